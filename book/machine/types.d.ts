// What scripts of a page tell each other.
interface Window {
  machine: import("./app.js").App;
  machine_model: (part: object | string) => void;
}
declare var machine_still: (...given: any[]) => string;
