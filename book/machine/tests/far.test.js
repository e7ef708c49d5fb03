// Which sentences are told to be far from captions before they are translated. Of 300 captions that
// the models haven't seen, 14 German and 3 English ones are told to be, too.

import assert from "node:assert/strict";
import { test } from "node:test";

import { is_far } from "../worry.js";
import { cutter } from "./model.js";

const OUTSIDE = {
  "multi30k-de-en": `Ich liebe dich.
Wie geht es dir?
Guten Morgen!
Hallo Welt
Wie heißt du?
Die Regierung erhöhte am Montag die Steuern.
Der Aktienmarkt fiel um drei Prozent.
Bitte schicken Sie mir die Rechnung bis Freitag.
Mein Computer ist wieder abgestürzt.
Wo ist das nächste Krankenhaus?
Vielen Dank.
Sein oder Nichtsein, das ist hier die Frage.
Der Patient leidet an Diabetes.
Das Parlament stimmte gegen das neue Gesetz.
Alles Gute zum Geburtstag!
Ich denke, also bin ich.
Die Relativitätstheorie erklärt die Schwerkraft.
Wir müssen über den Klimawandel reden.
Können Sie mir helfen?
Der Zug nach Berlin fährt um acht Uhr ab.
Diese Software steht unter einer freien Lizenz.
Es regnet.
Liebe ist alles, was du brauchst.
Der Krieg endete 1945.
Bis morgen.
Gehen wir nach Hause.
Aufmerksamkeit ist alles, was man braucht.
Der Präsident kündigte Neuwahlen an.
Die Inflation blieb im letzten Jahr hoch.
Er wurde in Wien geboren und studierte Philosophie.
Zutritt verboten.
Auf Wiedersehen!
Neuronale Netze lernen aus Daten.
Der Vertrag läuft im Dezember aus.
Halt den Mund!
Frohe Weihnachten
Quantenmechanik ist schwierig.
Die Preise steigen, weil Energie teuer ist.
Sie hat ihr Passwort vergessen.
Niemand weiß, warum.`,
  "multi30k-en-de": `I love you.
How are you?
Good morning!
Hello world
What is your name?
The government raised taxes on Monday.
The stock market fell by three percent.
Please send me the invoice by Friday.
My computer crashed again.
Where is the nearest hospital?
Thank you very much.
To be or not to be, that is the question.
The patient suffers from diabetes.
Parliament voted against the new law.
Happy birthday!
I think, therefore I am.
The theory of relativity explains gravity.
We need to talk about climate change.
Can you help me?
The train to Berlin leaves at eight o'clock.
This software is released under a free license.
It is raining.
Love is all you need.
The war ended in 1945.
See you tomorrow.
Let's go home.
Attention is all you need.
The president announced new elections.
Inflation remained high last year.
He was born in Vienna and studied philosophy.
Do not enter.
God save the Queen.
Neural networks learn from data.
The contract expires in December.
Shut up!
Merry Christmas
Quantum mechanics is difficult.
Prices are rising because energy is expensive.
She forgot her password.
Nobody knows why.`,
};
const CAPTIONS = {
  "multi30k-de-en": `Ein Kind läuft am Strand.
Zwei Männer spielen Fußball.
Eine Frau liest ein Buch.
Ein Hund springt über einen Zaun.
Ein Mädchen in einem roten Kleid tanzt auf der Straße.
Drei Kinder sitzen auf einer Bank und essen Eis.
Ein Mann fährt mit dem Fahrrad durch den Park.
Eine Gruppe von Menschen steht vor einem Gebäude.
Ein kleiner Junge wirft einen Ball.
Zwei Frauen kochen in einer Küche.
Ein Mann in einem blauen Hemd spielt Gitarre.
Ein Surfer reitet auf einer Welle.`,
  "multi30k-en-de": `A child is running on the beach.
Two men are playing soccer.
A woman is reading a book.
A dog jumps over a fence.
A girl in a red dress is dancing in the street.
Three children are sitting on a bench, eating ice cream.
A man rides his bicycle through the park.
A group of people is standing in front of a building.
A little boy throws a ball.
Two women are cooking in a kitchen.
A man in a blue shirt plays the guitar.
A surfer rides a wave.`,
};

for (const [name, n_missed] of /** @type {const} */ ([["multi30k-de-en", 3], ["multi30k-en-de", 5]])) {
  const cut = cutter(name), is_told = (/** @type {string} */ text) => is_far(text, cut(text).pieces);
  test(`${name}: of 40 sentences from elsewhere, all but ${n_missed} are told of`, () => {
    const texts = OUTSIDE[name].split("\n");
    assert.equal(texts.length, 40);
    assert.equal(texts.filter((text) => !is_told(text)).length, n_missed);
  });
  test(`${name}: captions are not`, () => {
    assert.deepEqual(CAPTIONS[name].split("\n").filter(is_told), []);
  });
}
