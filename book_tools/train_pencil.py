"""Train the pencil model and print the weights of `transformer_book/pencil.py`.

    python -m book_tools.train_pencil [SEED]

Every weight is rounded to one decimal before each pass, and the gradient passes through
the rounding as if it weren't there, so what is learned is what can be written down. A
second term of the loss asks the heads of the cross-attention to look at the word that
is being translated. Most seeds end with a model that translates all eight sentences;
60 is the one in the library.
"""

import sys

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

from transformer_book import pencil
from transformer_lib.model.attention import scaled_dot_product_attention

SEED, STEPS, RATE, DECAY, GUIDE = 60, 2500, 0.02, 6e-4, 0.05
ORDERS = ("im {place} spielt ein {who}", "ein {who} spielt im {place}")
PAIRS = [
    (order.format(who=who, place=place), f"<bos> a {said} plays in the {where} <eos>")
    for who, said in (("hund", "dog"), ("kind", "child"))
    for place, where in (("schnee", "snow"), ("park", "park"))
    for order in ORDERS
]
# head, position of the target, word of the source, weight wanted there
ALIGNMENT = (
    (0, 1, "who", 0.85),
    (0, 5, "place", 0.85),
    (1, 0, "ein", 0.7),
    (1, 2, "spielt", 0.7),
    (1, 3, "im", 0.7),
    (1, 4, "im", 0.7),
)
WHERE = [
    {word.strip("{}"): position for position, word in enumerate(order.split())}
    for order in ORDERS
]


class Rounded(torch.autograd.Function):
    """One decimal forward, the identity backward."""

    @staticmethod
    def forward(context: object, x: Tensor) -> Tensor:
        """Round."""
        return (x * 10).round() / 10

    @staticmethod
    def backward(context: object, gradient: Tensor) -> Tensor:
        """Pass the gradient on."""
        return gradient


def alignment_loss(weights: Tensor) -> Tensor:
    """How far the maps (pairs, heads, tgt_len, src_len) are from ALIGNMENT."""
    pairs = torch.arange(len(PAIRS))
    loss = torch.zeros(())
    for head, position, word, wanted in ALIGNMENT:
        source = torch.tensor([WHERE[i % 2][word] for i in range(len(PAIRS))])
        weight = weights[pairs, head, position, source].clamp(1e-6, 1 - 1e-6)
        loss = loss - (wanted * weight.log() + (1 - wanted) * (1 - weight).log()).mean()
    return loss


def train(seed: int) -> dict[str, Tensor]:
    """Return the rounded weights by name; embeddings once, as lm_head.weight."""
    torch.manual_seed(seed)
    model = pencil.new_model().train()
    maps: list[Tensor] = []

    def recorded(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, rate: float) -> Tensor:
        output, weights = scaled_dot_product_attention(q, k, v, mask)
        maps[:] = [weights]
        return output

    model.decoder.layers[0].cross_attn.kernel = recorded
    src = torch.cat([pencil.ids(source) for source, _ in PAIRS])
    tgt = torch.cat([pencil.ids(target) for _, target in PAIRS])
    learned = {
        name: parameter
        for name, parameter in model.named_parameters()
        if "norm" not in name and not name.endswith("out_proj.bias")
    }
    optimizer = torch.optim.Adam(learned.values(), lr=RATE)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / STEPS) + 1e-4
        rounded = {name: Rounded.apply(p) for name, p in learned.items()}
        logits = functional_call(model, rounded, (src, tgt[:, :-1]), tie_weights=True)
        loss = F.cross_entropy(
            logits.flatten(0, 1), tgt[:, 1:].flatten(), label_smoothing=0.05
        )
        loss = loss + DECAY * sum(p.square().sum() for p in learned.values())
        loss = loss + GUIDE * alignment_loss(maps[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = (logits.argmax(-1) == tgt[:, 1:]).all()
    print(f"seed {seed}: all eight sentences {'right' if right else 'NOT right'}")
    return {name: weight.detach() for name, weight in rounded.items()}


def main() -> None:
    """Train with the seed that is named and print what was learned."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else SEED
    for name, weight in train(seed).items():
        print(name)
        for row in weight.view(-1, weight.size(-1)).tolist():
            print(" ".join(f"{number + 0.0:4.1f}" for number in row))


if __name__ == "__main__":
    main()
