"""The feed-forward network as two convolutions, as some texts write it."""

import torch
from torch import nn

from transformer_lib.model.layers import FeedForward


def as_convolution(feed_forward: FeedForward) -> nn.Sequential:
    """Return the same network as two convolutions of kernel size 1.

    Args:
        feed_forward: its weights are copied.

    Returns:
        A network that expects positions last, as convolutions do:
        (batch, d_model, length) -> (batch, d_model, length).
    """
    convolutions = []
    for linear in (feed_forward.expand, feed_forward.contract):
        conv = nn.Conv1d(linear.in_features, linear.out_features, kernel_size=1)
        conv = conv.to(linear.weight)
        with torch.no_grad():
            conv.weight.copy_(linear.weight.unsqueeze(-1))  # (out, in, 1)
            conv.bias.copy_(linear.bias)
        convolutions.append(conv)
    first, second = convolutions
    return nn.Sequential(first, feed_forward.activation, feed_forward.dropout, second)
