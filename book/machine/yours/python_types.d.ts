// What Python in the page is made of, and what it is asked.

/** What a worker is made of; sources: text by path */
export interface Files {
  script: string; module: WebAssembly.Module; library: Uint8Array<ArrayBuffer>;
  sources: { [path: string]: string };
}
/** Bytes of its files */
export interface Progress { loaded: number; total: number }
export interface Options {
  on_progress?: (share: number) => void; // of the answer
  seconds?: number; // without progress, after which it is ended
}

/** What is used of Pyodide */
export interface Pyodide {
  FS: { mkdirTree(path: string): void; writeFile(path: string, text: string): void };
  toPy(x: unknown): unknown;
  pyimport(name: string): any;
  runPython(code: string): any;
  _module: Memory & object;
}
/** Its memory: views that are made anew when it grows */
export interface Memory {
  HEAP8: Int8Array; HEAP32: Int32Array; HEAPF32: Float32Array; HEAPF64: Float64Array;
}

declare global {
  interface Window {
    machine_python: (part: unknown) => void; // what its scripts call
  }
}
