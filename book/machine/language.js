// @ts-check
// Which language a text is in, German or English, told by words that only one of them has; and
// whether it is far from the photo captions that the models have learned.

/** @typedef {"German"|"English"|"mixed"|"other"|"none"} Language */

// Without those that the other language has, too: in, an, am, die, so, was, war, hat, man, also.
const WORDS = {
  German: "der das den dem des ein eine einen einem einer eines und ist sind mit auf im zu von vor " +
    "bei aus nach über unter neben sich nicht ich du er sie wir ihr ihre ihrem ihren wie wo warum wer " +
    "während zwei drei vier mehrere viele kein keine für um durch beim zum zur sein seine seinen " +
    "seinem mich dich dir mir uns frau mann kind kinder mädchen junge jungen hund männer frauen " +
    "alle diese gruppe personen menschen straße kleiner kleines läuft spielt spielen steht stehen sitzt sitzen trägt hält geht gehen fährt schläft liest isst",
  English: "the a of and is are with on at to for from by this that these those it he she they his " +
    "her their its two three four some while wearing you i i'm my me we your what how where why who " +
    "not woman men women boy girl dog child children people plays sits stands runs cat sleeps " +
    "has have were be been do does can black white red blue little young into out up down over no " +
    "let's hello hi happy merry thank thanks please good morning",
};
const SETS = { German: new Set(WORDS.German.split(" ")), English: new Set(WORDS.English.split(" ")) };

const words_of = (/** @type {string} */ text) => text.match(/\p{L}+(?:['’]\p{L}+)*/gu) || [];

/** @param {string} text @returns {Language} */
export function language(text) {
  const words = words_of(text), latin = words.filter((word) => /^[\p{Script=Latin}'’]+$/u.test(word));
  if (!words.length) return "none";
  const count = (/** @type {keyof typeof SETS} */ side, /** @type {RegExp} */ looks) =>
    latin.filter((word) => SETS[side].has(word.toLowerCase().replace("’", "'")) || looks.test(word)).length;
  const german = count("German", /[äöüß]/i), english = count("English", /^\p{Ll}{2,}ing$/u);
  const least = Math.min(german, english), most = Math.max(german, english);
  if (latin.length < words.length / 2 || (words.length > 3 && most < words.length / 8)) return "other";
  if (least > 1 && least > most / 3) return "mixed";
  return english > german ? "English" : "German"; // for what the model is made, where both may be
}

// Whom nobody says in a caption, and what nobody asks or wishes
const TALKS = new Set(("i i'm i'll i've you you're we we're let's us me my your our mine yours myself " +
  "yourself ich du wir mich dich dir mir uns euch mein meine meinen meinem meiner dein deine deinen " +
  "deinem deiner unser unsere unseren euer eure bin bist hello hi hey thanks thank please goodbye " +
  "sorry merry hallo danke bitte tschüss willkommen entschuldigung").split(" "));
const WISHES = /\?|\b(good (morning|evening|night)|happy birthday|guten (morgen|tag|abend)|gute nacht|auf wiedersehen|frohe|alles gute)\b/i;

/** What no caption says, as far as the words alone tell it: somebody is spoken to, or asked, or greeted
 *  @param {string} text */
export const is_talk = (text) => WISHES.test(text)
  || words_of(text).some((word) => TALKS.has(word.toLowerCase().replace("’", "'")));
