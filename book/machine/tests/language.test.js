import assert from "node:assert/strict";
import { test } from "node:test";

import { is_talk, language } from "../language.js";

/** @type {[import("../language.js").Language, string[]][]} */
const TEXTS = [
  ["German", ["Ein Hund spielt im Schnee.", "ein kind liest", "Am Strand", "Hand in Hand", "Kinder",
    "Mann mit Hut", "Ich liebe dich.", "Wie geht es dir?", "Er war in der Bar.", "<b>Ein Hund</b>",
    "Ein Baby in einem T-Shirt hält einen Football.", "Guten Morgen!", "Frohe Weihnachten"]],
  ["English", ["A dog plays in the snow.", "dog", "Two cats", "I love you.", "Hello", "I’m tired",
    "The man was in a die-hard mood.", "How are you?", "Red car", "Shut up!", "Happy birthday!"]],
  ["mixed", ["Der dog is playing im Schnee.", "The man spielt a guitar with einem Hund"]],
  ["other", ["Un chien joue dans la neige.", "El perro juega en la nieve.", "Собака играет в снегу.",
    "Pies bawi się w śniegu.", "כלב משחק בשלג", "犬が雪の中で遊んでいる"]],
  ["none", ["", "  ", "...?!", "🙂🙂", "123 45"]],
];

for (const [found, texts] of TEXTS) {
  test(`${found}: ${texts.length} texts`, () => {
    for (const text of texts) assert.equal(language(text), found, text);
  });
}

test("who speaks to somebody, asks or greets says no caption", () => {
  const is = ["I love you.", "Ich liebe dich.", "Wo ist der Bahnhof?", "Good morning!", "Guten Morgen!",
    "Hello world", "I’ve seen it", "Danke."];
  const is_not = ["Ein Hund spielt.", "A dog plays.", "Eine Frau in einem guten Kleid.", "A good dog."];
  assert.deepEqual(is.filter(is_talk), is);
  assert.deepEqual(is_not.filter(is_talk), []);
});
