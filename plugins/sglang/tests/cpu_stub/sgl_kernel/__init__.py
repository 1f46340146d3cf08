"""Stands where SGLang's kernels would be, so that its CPU engine runs on a machine without them: slow, and
enough for a Llama. Two kernels are computed here; every other one is a function that says that it is
missing."""

import torch


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*arguments, **keywords):
        raise NotImplementedError(f"sgl_kernel.{name} is not here")

    return missing


def assign_req_to_token_pool_cpu(requests, table, first, last, locations, stride):
    """Writes for each request where its tokens from first to last are kept, one request after the other."""
    bounds = [0, *torch.cumsum(last - first, 0).tolist()]
    for at, request in enumerate(requests.tolist()):
        part = locations[bounds[at]:bounds[at + 1]]
        table[request, int(first[at]):int(last[at])] = part.to(table.dtype)


def _rotate(values, head, cosine, sine, neox):
    heads = values.reshape(len(values), -1, head)
    turned, rest = heads.split([2 * cosine.shape[-1], head - 2 * cosine.shape[-1]], -1)
    if neox:
        a, b = turned.chunk(2, -1)
        turned = torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)
    else:
        a, b = turned[..., ::2], turned[..., 1::2]
        turned = torch.stack([a * cosine - b * sine, b * cosine + a * sine], -1).flatten(-2)
    return torch.cat([turned, rest], -1).reshape(values.shape).to(values.dtype)


def _rotary(positions, query, key, head, cache, neox):
    cosine, sine = cache[positions.long()].unsqueeze(1).chunk(2, -1)
    return (_rotate(query, head, cosine, sine, neox), _rotate(key, head, cosine, sine, neox))


_library = torch.library.Library("sgl_kernel", "FRAGMENT")
_library.define("rotary_embedding_cpu(Tensor positions, Tensor query, Tensor key, int head, "
                "Tensor cache, bool neox) -> (Tensor, Tensor)")
_library.impl("rotary_embedding_cpu", _rotary, "CPU")
