"""Texts with a label each, in three parts, checked."""

from collections import Counter
from dataclasses import dataclass

from transformer_lib.data.corpora.parallel import PARTS
from transformer_lib.data.texts import check_labelled
from transformer_lib.model.checks import check_kind, check_texts

Labelled = tuple[str, int]


@dataclass(frozen=True)
class LabelledCorpus:
    """Texts and their classes: to train on, to tune on, to test on.

    Attributes:
        name: what it is called in logs and messages.
        classes: what each label means: label i is classes[i].
        train, valid, test: (text, label), no text of them empty.

    Raises:
        ValueError: a part or a text is empty, a label has no class, or a class has no
            text to learn from; which one.
    """

    name: str
    classes: tuple[str, ...]
    train: tuple[Labelled, ...]
    valid: tuple[Labelled, ...]
    test: tuple[Labelled, ...]

    def __post_init__(self) -> None:
        check_texts("classes", self.classes)
        for part in PARTS:
            rows = getattr(self, part)
            check_labelled(rows)
            if not rows:
                raise ValueError(f"corpus {self.name!r}: part {part!r} is empty")
            for line, (text, label) in enumerate(rows, start=1):
                where = f"corpus {self.name!r}: part {part!r}, line {line}"
                check_kind(str, **{where: text})
                if not text.strip():
                    raise ValueError(f"{where}: the text is empty")
                if label not in range(len(self.classes)):
                    raise ValueError(
                        f"{where}: label {label!r} is none of the "
                        f"{len(self.classes)} classes {', '.join(self.classes)}"
                    )
        counts = Counter(label for _, label in self.train)
        for label, name in enumerate(self.classes):
            if not counts[label]:
                raise ValueError(
                    f"corpus {self.name!r}: class {name!r} never occurs among "
                    f"{len(self.train)} training texts, so it can't be learned"
                )
