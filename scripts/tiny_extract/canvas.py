"""Training examples of the diffusion model: a record with masks, as decoding meets it.

A canvas is the prompt, the record and end tokens up to a whole block. Most canvases end with the block that is being decoded:
what stands in front of it is known, and of the block a share is masked that is drawn for each record. Some go on with masks, as
where the canvas is longer than a block. The others have their masks anywhere in the record.
"""

import gen

MASK = gen.PAD                                       # the token that pads nothing here
REPEATS = 4                                          # canvases of one text: making a text takes longer than masking it
BLOCKS = [16, 16, 16, 16, 16, 16, 32, 32, 8, 64]
FORCED = 0.3                                         # weight of a token that the grammar forces, against one that the model chooses


def pieces(rng, encode):
    """Tokens of a prompt and of its record, and the weights of the record's tokens."""
    example = gen.group(rng, 1)[0]
    fields = gen.view(example.schema) if rng.random() < 0.98 else ""
    prompt = [gen.BOS] + [token for token, _, _ in encode(fields + "\n")] + [token for token, _, _ in encode(example.text + "\n")]
    return prompt, *gen.scored(example, encode)


def masked_block(rng, weights, size):
    """Which tokens of the canvas are masked, for one block of it, and where the canvas ends."""
    starts = [at for at in range(0, len(weights), size) if any(weights[at:at + size])]
    if not starts:
        return [], 0
    begin = rng.choice(starts)
    end = begin + size
    first = next(at for at in range(begin, end) if weights[at])        # tokens that are forced in front of it are known
    share = 1 if rng.random() < 0.5 else rng.random()
    places = [at for at in range(first, end) if rng.random() < share] or [first]
    length = end if rng.random() < 0.8 else len(weights) + size * rng.randint(0, 3)
    return places + list(range(end, length)), length


def masked_anywhere(rng, weights):
    share = rng.random()
    places = [at for at, weight in enumerate(weights) if weight] if rng.random() < 0.5 else range(len(weights))
    return [at for at in places if rng.random() < share], len(weights)


def canvases(rng, encode):
    """(inputs, ids, weights, positions, parts) of some canvases of one text; a token is predicted by the row in front of it."""
    prompt, record, scores = pieces(rng, encode)
    for _ in range(REPEATS):
        size = rng.choice(BLOCKS)
        padding = size - len(record) % size          # at least one end token
        weights = scores + [0] * padding
        places, length = masked_block(rng, weights, size) if rng.random() < 0.75 else masked_anywhere(rng, weights)
        if not places:
            continue
        weights += [0] * (length - len(weights))
        clean = (record + [gen.EOS] * (length - len(record)))[:length]
        noised, loss = list(clean), [0] * length
        for at in places:
            noised[at] = MASK
            loss[at] = weights[at] or FORCED
        count = len(prompt) + length
        # One token more, which nothing sees: the last one of the canvas is an input, too.
        yield prompt + noised + [MASK], prompt + clean + [MASK], [0] * len(prompt) + loss + [0], list(range(count + 1)), [0] * count + [-1]
