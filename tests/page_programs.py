"""Programs for both torches: tables of expressions, and some lines that go together.

`test_page_torch` says what their names stand for.
"""


def table(text):
    """The lines of a table, without its empty ones."""
    return [line.strip() for line in text.splitlines() if line.strip()]


EACH_NUMBER = table("""
    x.exp()
    torch.exp(z)
    z.log()
    x.sqrt()
    z.rsqrt()
    z.sin()
    torch.cos(x)
    z.tanh()
    z.sigmoid()
    z.relu()
    F.relu(x)
    F.gelu(x.float())
    F.gelu(x.float(), approximate="tanh")
    F.silu(x.double())
    x.abs()
    abs(z)
    -x
    ~x
    x.square()
    (x * 2).round()
    z.isnan()
    z.isinf()
    z.isfinite()
    x.clamp(-1, 1)
    x.clamp(min=s)
    z.clamp(max=0.5)
    x.double()
    x.float()
    x.long()
    x.int()
    x.bool()
    z.bool()
    x.to(torch.float64)
    x.to(y)
    x.to(y.dtype)
    x.clone()
    x.detach()
    x.contiguous().stride()
    x.data
    torch.zeros_like(x)
    torch.ones_like(x)
    torch.full_like(x, 2)
    torch.full_like(x, 0.5)
    torch.empty_like(x).shape
    x.new_zeros(2, 3)
    x.new_full((2,), 1)
    x.new_tensor([0, 1])
""")

TWO_TENSORS = table("""
    x + y
    x[1:] + x[-1:]
    x + x[-1]
    x - y
    x * y
    x / y
    x // y
    x % y
    x ** y
    x == y
    x != y
    x < y
    x <= y
    x > y
    x >= y
    z > y
    x & y
    x | y
    torch.maximum(x, y)
    torch.where(m, x, y)
    torch.where(m, x, 0)
    x.masked_fill(m, 0)
    x.masked_fill(m, -1e9)
    x.masked_fill(y, 1)
    torch.equal(x, y)
    torch.allclose(z, z)
    torch.allclose(z, z, equal_nan=True)
    x + y.T
    x.mT + y
""")

NUMBERS = table("""
    x + s
    s + x
    x - s
    s - x
    x * s
    s * x
    x / s
    s / x
    x // s
    s // x
    x % s
    x ** s
    s ** x
    x == s
    x != s
    s <= x
    x & s
    x | True
    x * torch.tensor(1.5)
    x + torch.tensor(2)
    x * torch.tensor(True)
    torch.tensor(0.5, dtype=torch.float64) * x
    x + None
    x + "1"
    x == None
    x == "1"
    x + [1]
    (x, None) == (x, None)
    x in [1]
""")

ALL_OF_IT = table("""
    x.sum()
    sum(x)
    x.mean()
    x.prod()
    x.max()
    z.max()
    x.amax()
    z.amin()
    x.argmax()
    z.argmax()
    x.argmin()
    x.std()
    x.var()
    x.std(correction=0)
    x.any()
    x.all()
    x.sum(dtype=torch.float64)
    x.cumsum(0)
    x.nonzero()
    torch.where(x)
    x.nonzero(as_tuple=True)
    x.item()
    x.tolist()
    bool(x)
    float(x)
    int(x)
    len(x)
    list(x)
    x.numel()
    x.ndim
    x.shape
    x.size()
    tuple(x.shape)
    x.shape[-1]
    x.shape == y.shape
    x.dtype
    x.is_floating_point()
    x.stride()
    x.T.stride()
    x.is_contiguous()
    x.mT.is_contiguous()
    x.nbytes
    str(x.device)
    x.requires_grad
    x.isnan().any()
    range(x)
    [0, 1, 2][x]
    hash(x) == hash(x)
    isinstance(x, torch.Tensor), torch.is_tensor(x)
""")

ALONG_AN_AXIS = table("""
    x.sum(d)
    x.sum(dim=d, keepdim=True)
    x.sum((d, e))
    x.sum([d, e], keepdim=True)
    x.sum(axis=d)
    x.mean(d)
    z.mean(d, keepdim=True)
    x.mean((d, e))
    x.prod(d)
    x.amax(d)
    z.amax(d, keepdim=True)
    z.amin(d)
    x.amax((d, e))
    x.max(d)
    z.max(d, keepdim=True)
    torch.max(x, dim=d).values
    x.min(d).indices
    x.max(dim=d)[0]
    x.argmax(d)
    z.argmax(d)
    x.argmax(dim=d, keepdim=True)
    x.softmax(d)
    z.softmax(d)
    torch.softmax(x, d)
    F.softmax(x, dim=d)
    x.softmax(d, dtype=torch.float64)
    z.log_softmax(d)
    F.log_softmax(x, d)
    nn.Softmax(d)(x)
    x.logsumexp(d)
    z.logsumexp(d, keepdim=True)
    x.cumsum(d)
    x.any(d)
    x.all(d, keepdim=True)
    x.var(d)
    x.var(d, unbiased=False)
    x.var(d, correction=0, keepdim=True)
    x.std(d)
    x.norm(dim=d)
    F.normalize(x, dim=d)
    F.layer_norm(z[None], z[None].shape[-1:])
    F.layer_norm(z[1:], z.shape[-1:], z[0], z[-1])
    x.sort(d)
    x.sort(dim=d, descending=True, stable=True)
    x.argsort(dim=d, stable=True)
    x.topk(n, d).values
    x.unsqueeze(d)
    x.squeeze(d)
    x.squeeze()
    x.flip(d)
    x.flip((d, e))
    x.flip([0])
    x.roll(n, d)
    x.roll(n)
    x.roll((1, n), (d, e))
    x.transpose(d, e)
    x.mT
    x.T
    x.t()
    x.flatten(d)
    x.flatten(d, e)
    x.unflatten(d, (n, -1))
    x.unflatten(d, (-1, 1))
    x.split(abs(n) + 1, d)
    x.split([1, 2], dim=d)
    x.chunk(n, d)
    x.unbind(d)
    torch.cat([x, x], d)
    torch.cat((x, y), dim=d)
    torch.cat([x, x.new_zeros(0)])
    torch.stack([x, x], d)
    torch.cat([])
    x.repeat_interleave(abs(n), d)
    x.repeat_interleave(2, dim=d)
    x.index_select(d, torch.tensor([0, 0]))
    x.gather(d, torch.zeros_like(x, dtype=torch.int64))
    x.gather(d, x.float().argmax(d, keepdim=True))
    x.size(d)
    x.shape[d]
    x.tril()
    x.tril(n)
    x.triu(diagonal=n)
    torch.tril(x)
    x.expand(n, *x.shape)
    x.expand_as(y)
    x.expand(x.shape).stride()
    x[None].expand(3, *[-1] * x.dim())
    x.repeat(n, 1, 2)
    x.permute(o)
    x[None].permute(0, *(axis + 1 for axis in o))
    x.permute(o).contiguous().stride()
    x.permute(o).reshape(-1)
    x.permute(o).is_contiguous()
    x.permute(d, e)
    x.view(-1)
    x.view(x.size(0), -1)
    x.view(n, -1)
    x.view(*x.shape, 1)
    x.view_as(y)
    x.reshape(-1)
    x.reshape(n, -1)
    x.reshape(*x.shape[:-1], -1, 1)
    x.reshape(y.shape)
    x.mT.reshape(-1)
""")

INDICES = table("""
    x[n]
    x[-1]
    x[0, n]
    x[..., n]
    x[..., -1, :]
    x[:, n]
    x[None]
    x[:, None]
    x[..., None]
    x[None, ..., None]
    x[:n]
    x[n:]
    x[1:, :-1]
    x[::2]
    x[..., ::2]
    x[:, 1::2]
    x[::-1]
    x[...]
    x[m]
    x[x > 0]
    x[x.bool()]
    x[~m]
    x[True]
    x[[0]]
    x[[0, -1]]
    x[torch.tensor([0, n])]
    x[torch.tensor(n)]
    x[torch.tensor([[0, 0], [0, n]])]
    x[:, [0, -1]]
    x[[0, -1], [0, n]]
    x[[0], :, [n]]
    x[:, [0], [0]]
    x[torch.arange(x.size(0)), 0]
    x[torch.arange(len(x)), x.float().argmax(1)]
    x[0, :, torch.tensor([0, n])]
    x[None, [0, 0]]
    x[[0, 0], None]
    x[..., torch.tensor([True, False])]
    x[torch.tensor([True, False, True])]
    x[0.5]
    x[0, 0, 0, 0, 0]
    x[y]
    x[y.long()]
    x[n].stride()
""")

WRITES = table("""
    x[n] = s
    x[0] = y
    x[:] = y
    x[..., n] = 1
    x[:, 0] = s
    x[::2] = s
    x[m] = s
    x[x > 0] = 0
    x[x > 0] = x[x > 0].flip(0)
    x[[0, -1]] = 5
    x[:, [0]] = y
    x[torch.arange(x.size(0)), 0] = 7
    x[torch.tensor([0])] = y
    x.T[0] = s
    x.mT[..., 0] = 3
    x[0][0] = 1
    x.view(-1)[0] = 9
    x[None][0] = 4
    x.transpose(d, e)[0] = 1
    x.select(d, 0).fill_(1)
    x += s
    x += y
    x /= 2
    x //= 2
    x **= 2
    x &= y
    x |= m
    x[0] += s
    x[:, 0] *= 2
    x[m] += 1
    x.add_(s)
    x.add_(y)
    x.zero_()
    x.fill_(s)
    x.copy_(y)
    x.masked_fill_(m, 1)
    x[0].zero_()
    x.unbind(0)[0].fill_(2)
    x.expand(2, *x.shape)[0] = 1
    x.data.fill_(1)
    x.detach()[0] = 1
    x.clone()[0] = 1
    x.float()[0] = 1
""")

# p continues in q.
PRODUCTS = {
    "any": table("""
        p @ q
        torch.matmul(p, q)
        p.matmul(q)
        p.mm(q)
        p.dot(q)
        p.bmm(q)
        p @ p.mT
        p.T @ q
        (p @ q).stride()
        p.mT @ p
        F.linear(p, q)
        F.linear(p, q.mT)
    """),
    "vectors": table("""
        p @ q
        torch.dot(p, q)
        p.dot(q)
        torch.einsum("i,i->", p, q)
        torch.einsum("i,j->ij", p, q)
        torch.einsum("...i,...i->...", p, q)
    """),
    "matrices": table("""
        p @ q
        p.mm(q)
        torch.mm(p, q)
        p @ q[:, 0]
        p.mv(q[:, 0])
        p[0] @ q
        F.linear(p, q.T)
        F.linear(p, q.T, q[0])
        F.linear(p[1:], q.T, q[-1])
        F.linear(p, q.T.contiguous()[1:], q[-1, 1:])
        p[1:] @ q.T.contiguous().T
        torch.einsum("ij,jk->ik", p, q)
        torch.einsum("ij,jk", p, q)
        torch.einsum("ij,kj->ik", p, q.T)
        torch.einsum("ij->ji", p)
        torch.einsum("ij->j", p)
        torch.einsum("ij->", p)
        torch.einsum("ij,ij->i", p, p)
        torch.einsum("i j, j k -> i k", p, q)
        torch.einsum("ij,jk,k->i", p, q, q[0])
    """),
    "batches": table("""
        p @ q
        torch.bmm(p, q)
        p.bmm(q)
        p @ q[0]
        p[0] @ q
        p @ q[..., 0]
        p[:, None] @ q
        p.mT @ p
        F.linear(p, q[0].T)
        torch.einsum("bij,bjk->bik", p, q)
        torch.einsum("bij,bjk->ik", p, q)
        torch.einsum("bqd,bkd->bqk", p, q.mT)
        torch.einsum("...d,bkd", p, q.mT)
        torch.einsum("bhd,bhe->bhde", p, p)
        torch.einsum("...d,de->...e", p, q[0])
        torch.einsum("...ij,...jk->...ik", p, q)
    """),
}

MAKING = table("""
    torch.tensor(3)
    torch.tensor(2.5)
    torch.tensor(True)
    torch.tensor([1, 2.5])
    torch.tensor([True, 2])
    torch.tensor([[1, 2], [3, 4]])
    torch.tensor([])
    torch.tensor([[1, 2], [3]])
    torch.tensor([1, [2]])
    torch.tensor(["a"])
    torch.tensor(None)
    torch.tensor(range(3))
    torch.tensor([1, 2], dtype=torch.float64)
    torch.tensor([0.5, 2], dtype=torch.int64)
    torch.tensor([0, 2], dtype=torch.bool)
    torch.tensor([1.0, 2.0], device="cpu", requires_grad=False)
    torch.Tensor([1, 2])
    torch.zeros(2, 3)
    torch.zeros((2, 3))
    torch.zeros(2, dtype=torch.int64)
    torch.zeros(-1)
    torch.zeros(torch.ones(2, 3).shape)
    torch.ones(2, 2, dtype=torch.bool)
    torch.ones(3) * 2
    torch.full((2, 2), 1)
    torch.full((2,), 1, dtype=torch.float32)
    torch.empty(2, 3).shape
    torch.arange(5)
    torch.arange(2, 5)
    torch.arange(0, 10, 3)
    torch.arange(5, 0, -2)
    torch.arange(5.0)
    torch.arange(1, 2, 0.25)
    torch.arange(0, 1, 0.1)
    torch.arange(3, dtype=torch.float32)
    torch.arange(0)
    torch.linspace(0, 1, 5)
    torch.linspace(-900, 900, 23)
    torch.eye(3)
    torch.eye(2, 3)
    torch.block_diag(torch.ones(2, 2), torch.arange(3).view(1, 3), torch.tensor([7]))
    torch.ones(3, 3, dtype=torch.bool).tril()
    torch.float32, torch.float, torch.long, torch.int64, torch.double, torch.bool
    torch.inf, torch.nan, torch.pi
    torch.Size([2, 3]), torch.Size((2, 3)).numel()
    torch.device("cpu"), str(torch.device("cpu")), torch.device("cpu").type
    torch.ones(2).requires_grad, torch.ones(2).grad
    torch.tensor(2).item(), torch.tensor(2.5).item(), torch.tensor(True).item()
    torch.tensor([0.1]).tolist(), torch.tensor(0.1).item()
    torch.tensor(1e40)
    torch.tensor([16777217], dtype=torch.float32).long()
    torch.tensor(3.9).long(), torch.tensor(-3.9).int()
    torch.tensor([1.0]) / 0, torch.tensor([0.0]) / 0
    torch.tensor([1]) // 0
    torch.tensor([1]) % 0
    torch.tensor([-7, 7]) // 2, torch.tensor([-7, 7]) % 3, torch.tensor([-7.5]) % 2
    torch.tensor([2]) ** -1
    2 ** torch.arange(3), 10_000 ** (torch.arange(2) / 4)
    torch.tensor([1000.0]).exp(), torch.tensor([-1000.0]).exp()
    torch.tensor([1000.0, -1000.0]).sigmoid()
    torch.tensor([[0.0, 1.0], [1000.0, 1001.0]]).softmax(-1)
    torch.tensor([[-math.inf] * 2, [0, 1.0]]).softmax(-1)
    torch.tensor([[-1e9] * 2, [0, -1e9]]).softmax(-1)
    torch.zeros(3, 0).softmax(-1), torch.zeros(0, 3).softmax(-1)
    torch.zeros(0).mean(), torch.zeros(0).sum(), torch.zeros(0).prod()
    torch.tensor([1.0, math.nan, 3.0]).max(), torch.tensor([math.nan, 1.0]).argmax()
    torch.tensor([3.0, 3.0, 1.0]).argmax(), torch.tensor([1, 1]).argmin()
    torch.tensor([0.5, 1.5, 2.5, -0.5]).round()
    torch.tensor([3, 1, 2]).sort(), torch.tensor([3, 1, 2]).argsort(descending=True)
    torch.tensor([3, 1, 2]).topk(2), torch.topk(torch.tensor([[1.0, 3, 2]]), 2)
    torch.arange(6).view(2, 3).topk(4)
    torch.pdist(torch.arange(6.0).view(3, 2))
    torch.arange(24).view(2, 3, 4).permute(2, 0, 1).flatten()
    torch.arange(24).view(2, 3, 4).transpose(0, 2).reshape(6, 4)
    torch.cumsum(torch.tensor([True, True, False]), 0)
    F.one_hot(torch.tensor([0, 2]), 3), F.one_hot(torch.tensor([1, 0]))
    F.pad(torch.arange(4).view(2, 2), (1, 0))
    F.pad(torch.ones(2, 2), (0, 1, 1, 0), value=7)
    F.cosine_similarity(torch.arange(6.0).view(2, 3), torch.ones(2, 3))
    F.cross_entropy(torch.arange(6.0).view(2, 3), torch.tensor([0, 2]))
    F.cross_entropy(torch.arange(6.0).view(2, 3), torch.tensor([0, 2]), ignore_index=0)
    F.dropout(torch.ones(3), 0.5, training=False), F.dropout(torch.ones(3), 0.0)
    F.layer_norm(torch.arange(6.0).view(2, 3), (3,))
    F.layer_norm(torch.eye(2, 3), (3,), torch.arange(3.0), torch.ones(3), 0.1)
    F.layer_norm(torch.ones(2, 3), (2,))
    F.rms_norm(torch.arange(6.0).view(2, 3), (3,))
    F.embedding(torch.tensor([[0, 2]]), torch.arange(6.0).view(3, 2))
    F.embedding(torch.tensor([3]), torch.arange(6.0).view(3, 2))
    [row.sum() for row in torch.arange(4).view(2, 2)]
    max(torch.tensor([1, 3, 2])), sorted(torch.tensor([3, 1, 2]).tolist())
    torch.ones(2) == [1, 1]
    torch.ones(3) if torch.tensor([1]) else None
    1 if torch.tensor([1, 2]) else None
    math.sqrt(torch.tensor(4)), round(torch.tensor(2.6).item())
    (1 < torch.arange(4)) & (torch.arange(4) < 3)
    f"{torch.tensor(0.12345):.2f} {torch.tensor(3)} {torch.tensor(2.0)}"
    f"{torch.ones(2)} {torch.ones(2, 2).shape} {torch.float32}"
    F.scaled_dot_product_attention(*[torch.arange(12.0).view(1, 3, 4).sin()] * 3)
    F.scaled_dot_product_attention(*[torch.eye(3, 4)] * 3, is_causal=True)
    F.scaled_dot_product_attention(*[torch.eye(3, 4)] * 3, torch.eye(3) > 1)
    F.scaled_dot_product_attention(*[torch.eye(3, 4)] * 3, torch.eye(3))
    F.scaled_dot_product_attention(*[torch.arange(12.0).view(3, 4)] * 3, scale=0.1)
    torch.triu(torch.full((3, 3), -math.inf), 1)
    torch.ones(2, 3).new_zeros(2).dtype, torch.arange(2).new_tensor(1.5)
    torch.ones(2, 3).nope
    torch.ones(2, 3).softmaxx(-1)
    torch.softmaxx(torch.ones(2))
    F.softmaxx(torch.ones(2))
    nn.Lineer(2, 3)
    torch.ones(2).sum(dimm=0)
    torch.set_printoptions(precision=2)
""")


PRINTED = table("""
    torch.tensor(3)
    torch.tensor(2.5)
    torch.tensor([])
    torch.zeros(0, 3)
    torch.tensor([], dtype=torch.int64)
    torch.arange(3)
    torch.arange(3.0)
    torch.tensor([0.1, 0.25, 100.0])
    torch.tensor([1e-5, 1.0])
    torch.tensor([1e10, 1.0])
    torch.tensor([123456.0, 0.5])
    torch.tensor([math.nan, 1.0, -math.inf])
    torch.tensor([math.inf])
    torch.tensor([-1.0, 2.0])
    torch.tensor([True, False])
    torch.tensor([1.0, 2.0], dtype=torch.float64)
    torch.tensor([1, 2], dtype=torch.int32)
    torch.arange(6).view(2, 3)
    torch.arange(12.0).view(2, 2, 3) / 7
    torch.arange(24).view(2, 1, 3, 4)
    torch.eye(3)
    torch.ones(3, 3, dtype=torch.bool).tril()
    torch.arange(6).view(2, 3).T
    torch.arange(40)
    torch.arange(30.0) / 3
    torch.arange(2000)
    torch.zeros(50, 50)
    torch.zeros(2, 600).bool()
    torch.tensor([0.0, -0.0])
    torch.tensor(12345.678)
    torch.tensor([[0.5, 1234.5678], [1e-3, -7]])
    torch.arange(3.0).softmax(0)
    torch.zeros(2).shape
    torch.float32
    torch.arange(6).view(2, 3).max(1)
    torch.arange(3.0).sort()
    nn.Parameter(torch.ones(2))
    torch.device("cpu")
    nn.Linear(2, 3)
    nn.Embedding(4, 2)
    nn.LayerNorm(4)
    nn.Dropout(0.1)
    nn.Softmax(-1)
    nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    nn.ModuleList([nn.Identity(), nn.Linear(1, 1)])
    nn.Module()
""")


# Messages that a reader meets: the first line is PyTorch's.
MESSAGES = table("""
    torch.ones(2, 3) @ torch.ones(2, 3)
    torch.ones(4, 2, 3) @ torch.ones(4, 2, 3)
    torch.ones(2, 4, 2, 3) @ torch.ones(2, 3)
    torch.ones(3) @ torch.ones(2)
    torch.ones(2, 3) @ torch.ones(2)
    torch.ones(2) @ torch.ones(3, 2)
    torch.ones(2, 5, 3) @ torch.ones(3, 3, 2)
    torch.ones(()) @ torch.ones(2)
    torch.ones(2, 3).mm(torch.ones(2, 3))
    torch.bmm(torch.ones(2, 2, 3), torch.ones(2, 2, 3))
    torch.bmm(torch.ones(2, 3), torch.ones(3, 2))
    torch.ones(2, 3) @ torch.ones(3, 2, dtype=torch.float64)
    torch.ones(2, 3) + torch.ones(2, 2)
    torch.ones(4, 2, 3) * torch.ones(3, 3)
    torch.ones(3).masked_fill(torch.ones(2) > 0, 0)
    torch.ones(3).masked_fill(torch.ones(3), 0)
    torch.where(torch.ones(2) > 0, torch.ones(3), 0)
    torch.where(torch.ones(2), 1.0, 0.0)
    torch.ones(2, 3).view(4)
    torch.ones(2, 3).view(4, -1)
    torch.ones(2, 3).view(-1, -1)
    torch.ones(2, 3).T.view(6)
    torch.ones(2, 3, 4).transpose(1, 2).view(2, 12)
    torch.ones(2, 3).reshape(4)
    torch.ones(2, 3).reshape(5, -1)
    torch.ones(2, 3).unflatten(-1, (2, -1))
    torch.ones(2, 3).unflatten(-1, (2, 2))
    torch.ones(2, 3)[2]
    torch.ones(2, 3)[-3]
    torch.ones(2, 3)[0, 3]
    torch.ones(2, 3)[0, 0, 0]
    torch.ones(2, 3)[torch.tensor([2])]
    torch.ones(2, 3)[[0, 5]]
    torch.ones(2, 3)[torch.tensor([True, False, True])]
    torch.ones(2, 3)[torch.tensor([0, 1]), torch.tensor([0, 1, 2])]
    torch.ones(2, 3)[torch.tensor([0.5])]
    torch.ones(2)[::-1]
    torch.ones(2).softmax(1)
    torch.ones(2, 3).sum(2)
    torch.ones(2, 3).sum(-3)
    torch.ones(2, 3).mean(5)
    torch.ones(2, 3).transpose(0, 2)
    torch.ones(2, 3).transpose(1, -3)
    torch.ones(2, 3).unsqueeze(4)
    torch.ones(2, 3).permute(0)
    torch.ones(2, 3).permute(0, 0)
    torch.ones(2, 3).permute(0, 2)
    torch.ones(2, 3).size(2)
    torch.ones(2, 3).shape[2]
    torch.ones(2, 3).argmax(2)
    torch.ones(2, 3).expand(2, 4)
    torch.ones(2, 3).expand(3)
    torch.ones(2, 3).repeat(2)
    torch.ones(2).tril()
    torch.ones(2, 3).t()[3]
    torch.ones(2, 3, 4).t()
    torch.ones(3).mT
    torch.cat([torch.ones(2, 3), torch.ones(2, 2)])
    torch.cat([torch.ones(2, 3), torch.ones(2)])
    torch.cat([torch.ones(2, 3), torch.ones(2, 3)], 2)
    torch.cat([])
    torch.cat(torch.ones(2, 3))
    torch.stack([torch.ones(2), torch.ones(3)])
    torch.stack([])
    torch.ones(2, 3).split([1, 2])
    torch.ones(2, 3).split([1, 1], 1)
    torch.ones(2).item()
    torch.zeros(0).item()
    float(torch.ones(2))
    int(torch.ones(2, 2))
    bool(torch.ones(2))
    bool(torch.zeros(0))
    len(torch.tensor(1))
    list(torch.tensor(1))
    -torch.ones(2, dtype=torch.bool)
    ~torch.ones(2)
    torch.ones(2) & torch.ones(2)
    1 - torch.ones(2).bool()
    torch.tensor([2]) ** -1
    torch.arange(3).__iadd__(0.5)
    torch.arange(3).add_(torch.ones(3))
    torch.ones(3).add_(torch.ones(2, 3))
    torch.ones(3).copy_(torch.ones(2))
    torch.ones(3).__setitem__(3, 1)
    torch.arange(3).__setitem__([0], torch.ones(1))
    torch.ones(2, 3).__setitem__(0, torch.ones(2))
    torch.ones(2, 3).__setitem__(slice(None), torch.ones(3, 3))
    torch.tensor([[1, 2], [3]])
    torch.tensor(["a"])
    torch.tensor(None)
    torch.zeros(-1)
    torch.arange(0, 2, 0)
    torch.arange(2, 0, 1)
    torch.ones(3).topk(4)
    torch.ones(2, 3).gather(1, torch.tensor([[3], [0]]))
    torch.ones(2, 3).gather(1, torch.tensor([0]))
    torch.ones(2, 3).flatten(1, 0)
    torch.ones(2).roll(1, 2)
    torch.einsum("ij,jk->ik", torch.ones(2, 3), torch.ones(2, 3))
    torch.einsum("ij->i", torch.ones(2))
    torch.einsum("ij,jk->il", torch.ones(2, 3), torch.ones(3, 2))
    torch.ones(2)()
    F.linear(torch.ones(2, 3), torch.ones(4, 2))
    F.layer_norm(torch.ones(2, 3), (2,))
    F.embedding(torch.tensor([3]), torch.ones(3, 2))
    F.embedding(torch.tensor([-1]), torch.ones(3, 2))
    F.embedding(torch.tensor([0.5]), torch.ones(3, 2))
    F.one_hot(torch.tensor([3]), 3)
    nn.Linear(2, 3)(torch.ones(4, 3))
    nn.Linear(2, 3)(torch.ones(2, dtype=torch.float64))
    nn.Linear(2, 3)(torch.arange(2))
    nn.Linear(2, 3)(3)
    nn.Embedding(3, 2)(torch.tensor([5]))
    nn.Embedding(3, 2)(torch.ones(2))
    nn.Module()(1)
    nn.Module().weight
    nn.Linear(2, 3).wait
    nn.Dropout(2)
    nn.LayerNorm(3)(torch.ones(2))
    nn.ModuleList([3])
    nn.ModuleList()[0]
    nn.Linear(2, 3).load_state_dict({})
    nn.Linear(2, 3).load_state_dict({"weight": torch.ones(2, 2), "bias": torch.ones(3)})
    nn.Linear(2, 3).load_state_dict({"a": torch.ones(1)}, strict=True)
    nn.Linear(2, 3).get_submodule("nope")
    setattr(nn.Linear(2, 3), "weight", torch.ones(3, 2))
    setattr(nn.Linear(2, 3), "weight", 3)
    F.scaled_dot_product_attention(torch.ones(2, 3), torch.ones(2, 4), torch.ones(2, 3))
    F.scaled_dot_product_attention(*[torch.ones(2, 3)] * 3, torch.ones(3, 3) > 0)
""")


DRAWN = table("""
    torch.rand({})
    torch.randn({})
    torch.rand({}, dtype=torch.float64)
    torch.randn({}, dtype=torch.float64)
    torch.randn([{}])
    torch.randn_like(torch.ones({}))
    torch.randint(9, ({},))
    torch.randint(-5, 5, ({},))
    torch.randperm({})
    torch.empty({}).normal_()
    torch.empty({}).normal_(1.0, 0.5)
    nn.init.normal_(torch.empty({}), 1.0, 0.5)
    nn.init.xavier_uniform_(torch.empty({}, 3))
    nn.Linear({}, 3).state_dict()
    nn.Embedding({}, 2).weight
""")


def program(text):
    """A program of several lines, from the table's indented text."""
    lines = text.strip("\n").splitlines()
    cut = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[cut:] for line in lines)


PROGRAMS = {
    "a generator of one's own": """
        chance = torch.Generator().manual_seed(3)
        x = torch.randn(3, generator=chance), torch.rand(2, generator=chance)
        torch.manual_seed(3)
        ids = torch.randint(5, (4,), generator=chance)
        x, torch.randn(3), ids
    """,
    "no gradient": """
        with torch.no_grad():
            x = torch.ones(2) * 2
        with torch.inference_mode():
            y = x + 1
        x, y, y.requires_grad
    """,
    "a module": """
        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.first = nn.Linear(width, 4)
                self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
                self.gain = nn.Parameter(torch.ones(4))
                self.register_buffer("table", torch.arange(4.0))
                self.norm = nn.LayerNorm(4)
                self.last = None

            def forward(self, x):
                x = self.first(x)
                for layer in self.layers:
                    x = x + layer(x).relu()
                return self.norm(x) * self.gain + self.table

        torch.manual_seed(0)
        net = Net(3).eval()
        names = [name for name, _ in net.named_parameters()]
        modules = [name for name, _ in net.named_modules()]
        size = sum(p.numel() for p in net.parameters())
        kinds = [type(child).__name__ for child in net.children()]
        state = net.state_dict()
        buffers = dict(net.named_buffers())
        y = net(torch.randn(2, 3))
        names, modules, size, kinds, [*state], buffers, y, repr(net)
    """,
    "weights are loaded": """
        net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1, bias=False))
        state = {name: torch.ones_like(x) for name, x in net.state_dict().items()}
        result = net.load_state_dict(state)
        some = {"0.bias": torch.zeros(2), "x": torch.ones(1)}
        part = net.load_state_dict(some, strict=False)
        errors = [
            attempt(lambda: net.load_state_dict(some)),
            attempt(lambda: net.load_state_dict({"0.bias": torch.ones(3)}, False)),
        ]
        keys = part.missing_keys, part.unexpected_keys
        str(result), keys, errors, net(torch.ones(1, 2))
    """,
    "tied weights": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.tokens = nn.Embedding(3, 2)
                self.head = nn.Linear(2, 3, bias=False)
                self.head.weight = self.tokens.weight

        net = Net()
        with torch.no_grad():
            net.tokens.weight[0] = 7
        size = len([*net.parameters()])
        same = net.head.weight is net.tokens.weight
        size, net.head.weight[0], [*net.state_dict()], same
    """,
    "training and evaluation": """
        net = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 3))
        before = [part.training for part in net.modules()]
        net.eval()
        same = torch.equal(net(torch.ones(2, 3)), net(torch.ones(2, 3)))
        before, [part.training for part in net.modules()], same, net.train()[0].training
    """,
    "a module is called without super": """
        class Net(nn.Module):
            def __init__(self):
                self.first = nn.Linear(2, 2)

        Net()
    """,
    "a forward is missing": """
        class Net(nn.Module):
            pass

        Net()(torch.ones(2))
    """,
    "parts of a list": """
        layers = nn.ModuleList([nn.Identity()])
        layers.append(nn.ReLU())
        layers.extend([nn.GELU()])
        layers[0] = nn.SiLU()
        len(layers), [type(layer).__name__ for layer in layers[1:]], repr(layers[-1])
    """,
    "a hook": """
        seen = []
        layer = nn.Linear(2, 2)
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape))
        layer.register_forward_hook(lambda _, inputs, output: output * 0)
        layer(torch.ones(3, 2)), seen
    """,
    "dropout": """
        torch.manual_seed(0)
        x = F.dropout(torch.ones(4000), 0.2)
        share = float((x == 0).float().mean())
        sorted({*x.tolist()}), 0.17 < share < 0.23, nn.Dropout(1.0)(torch.ones(3))
    """,
    "norms": """
        torch.manual_seed(0)
        x = torch.randn(2, 3, 4)
        kinds = nn.LayerNorm(4), nn.LayerNorm((3, 4)), nn.LayerNorm(4, bias=False)
        [norm(x) for norm in kinds]
    """,
    "attention": """
        torch.manual_seed(0)
        q, k, v = torch.randn(3, 2, 3, 4, 5)
        mask = torch.ones(4, 4, dtype=torch.bool).tril()
        scores = (q @ k.transpose(-2, -1) / math.sqrt(5)).masked_fill(~mask, -math.inf)
        weights = scores.softmax(dim=-1)
        weights @ v, F.scaled_dot_product_attention(q, k, v, mask), weights.sum(-1)
    """,
    "heads": """
        x = torch.arange(24).view(1, 3, 8)
        heads = x.view(1, 3, 2, 4).transpose(1, 2)
        joined = heads.transpose(1, 2).contiguous().view(1, 3, 8)
        wrong = attempt(lambda: heads.transpose(1, 2).flatten(2).view(-1, 5))
        errors = attempt(lambda: heads.view(1, 3, 8)), wrong
        heads, joined, errors, heads.reshape(1, 3, 8)
    """,
    "writes through views of views": """
        x = torch.arange(24).view(2, 3, 4)
        x[0].T[1:, ::2] = 0
        x[:, 1][1] += 100
        x.permute(2, 0, 1)[3] *= 2
        x.flatten()[0] = 7
        for row in x[1]:
            row -= 1
        x
    """,
    "an expanded row is shared": """
        x = torch.zeros(1, 3)
        y = x.expand(2, 3)
        x[0, 1] = 5
        y, attempt(lambda: y.add_(1)), y.contiguous().add_(1), x
    """,
    "a copy is not shared": """
        x = torch.zeros(2, 3)
        copies = x.clone(), x[[0, 1]], x[x == 0], x + 0, x.repeat(1, 1)
        x += 1
        copies, x
    """,
    "views share, reshape of a transposed tensor copies": """
        x = torch.zeros(2, 3)
        views = x.view(6), x.T, x[0], x[:, 1:], x[None], x.reshape(3, 2), x.flatten()
        copy = x.T.reshape(6), x.T.flatten()
        x[0, 0] = 1
        views, copy
    """,
    "overlapping": """
        x = torch.arange(5)
        x[1:] = x[:-1].clone()
        y = torch.arange(5)
        y[[0, 0]] += 1
        x, y
    """,
    "a model without memory": """
        with torch.device("meta"):
            layer = nn.Linear(3, 4)
        weight = layer.weight
        weight.shape, str(weight.device), weight.is_meta, weight.numel()
    """,
    "a deep copy": """
        import copy
        layer = nn.Linear(2, 2)
        other = copy.deepcopy(layer)
        with torch.no_grad():
            layer.weight.zero_()
        x = torch.ones(2)
        y = copy.copy(x), copy.deepcopy(x)
        bool(other.weight.any()), type(other.weight).__name__, y
    """,
    "loops over single numbers": """
        x, out = torch.arange(6.0).view(2, 3), torch.zeros(3, 2)
        for i in range(2):
            for j in range(3):
                out[j, i] = x[i, j] * 2 + float(x[i, j])
        out, sum(out[0]), max(out[1])
    """,
    "greedy": """
        ids = torch.tensor([[1]])
        for _ in range(3):
            token = torch.arange(5).roll(int(ids[0, -1])).argmax()
            ids = torch.cat([ids, token.view(1, 1)], dim=1)
        ids, ids[0].tolist()
    """,
    "shifted": """
        x = torch.arange(6).view(2, 3)
        y = torch.full_like(x, 1)
        y[:, 1:] = x[:, :-1]
        joined = torch.cat([x.new_full((2, 1), 1), x[:, :-1]], dim=1)
        y, joined, x.roll(1, 1), F.pad(x, (1, 0), value=1)
    """,
    "parameters stay parameters": """
        p = nn.Parameter(torch.ones(2))
        kinds = type(p).__name__, type(p + 1).__name__, isinstance(p, torch.Tensor)
        kinds, p, p.requires_grad
    """,
    "a function that is applied": """
        def start(part):
            if isinstance(part, nn.Linear):
                nn.init.ones_(part.weight)

        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).apply(start).double()
        y = net(torch.ones(2, dtype=torch.float64))
        net[0].weight, y.dtype, len(net), net[1].in_features
    """,
}
