// What scripts of a page tell each other.
interface Window {
  machine: import("./app.js").App;
  machine_model: (part: object | string) => void;
  machine_without_worker?: boolean; // for tests
}
declare var machine_still: (...given: any[]) => string;
