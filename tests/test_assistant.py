"""From a language model to an assistant: labels, losses, pairs of answers."""

import math

import pytest
import torch

from transformer_book.experiments import assistant, scaling
from transformer_lib.model.language_model import LanguageModel

PAD, ROLE = 0, 9


@pytest.fixture(scope="module")
def task():
    return assistant.Task()


def test_only_what_follows_the_role_is_predicted():
    ids = torch.tensor([[1, 8, 5, ROLE, 6, 2], [1, 8, ROLE, 7, 2, PAD]])
    labels = assistant.answer_labels(ids, ROLE, PAD)
    assert labels.tolist() == [[PAD, PAD, PAD, 6, 2], [PAD, PAD, 7, 2, PAD]]


def test_the_preference_loss_sees_the_lead_alone():
    def loss(chosen, rejected):
        pair = torch.tensor([chosen]), torch.tensor([rejected])
        return assistant.preference_loss(*pair, beta=0.5).item()

    assert loss(1.0, -1.0) == pytest.approx(math.log(1 + math.exp(-0.5 * 2)))
    assert loss(1.0, -1.0) == pytest.approx(loss(-1.0, -3.0))
    assert loss(-1.0, 1.0) > loss(0.0, 0.0) > loss(1.0, -1.0)


def test_the_probability_of_an_answer_is_that_of_its_tokens(task):
    torch.manual_seed(0)
    model = LanguageModel(task.config()).eval()
    ids = torch.tensor([assistant.whole(task, "der Lehrer singt", "the teacher sings")])
    labels = assistant.answer_labels(ids, task.assistant, task.tokenizer.pad_id)
    with torch.no_grad():
        found = assistant.answer_log_prob(model, ids, labels)
        log_probs = model(ids).log_softmax(dim=-1)[0]
    start = len(task.prompt("der Lehrer singt"))
    expected = sum(log_probs[i - 1, ids[0, i]] for i in range(start, ids.size(1)))
    torch.testing.assert_close(found[0], expected)


def test_the_parts_of_the_training_share_no_sentence_pair(task):
    assert not {*task.plain} & {*task.rest}
    assert not {*task.test} & {*task.plain, *task.rest}
    assert assistant.is_right("der Lehrer singt", "the teacher sings")
    assert not assistant.is_right("der Lehrer singt", "the teacher runs")


def test_equal_compute_is_six_times_parameters_times_tokens():
    few, many = (scaling.tokens_at_equal_compute(width) for width in (64, 8))
    assert few < many
    sizes = scaling.make_config(8, scaling.VOCAB_SIZE, 0)
    n = sum(p.numel() for p in LanguageModel(sizes).parameters())
    assert 6 * n * many == pytest.approx(scaling.OPERATIONS, rel=1e-4)
