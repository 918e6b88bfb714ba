"""Changes a network's text at stage nn into what the language has no words for: padding of two sizes, shared weights,
slices, transposes."""
import random
import re

PROGRAM = re.compile(r"^    nn\.program @(\w+)\(.*?^    }", re.M | re.S)
# Of no ops that arithmetic uses to stay inside of the domain of a square root or a logarithm.
VALUE = re.compile(r"^ +(%\w+) = nn\.(?:relu|conv|concat|tanh|max_pool) .* -> tensor<((?:\d+x){2,5})f32>$", re.M)


def shifted_padding(text, generator):
    """Moves padding from one side to the other, in all programs alike."""
    def shift(match):
        sums = [int(a) + int(b) for a, b in zip(match[1].split(", "), match[2].split(", "))]
        low = [random.Random(f"{salt}{match[0]}{i}").randint(0, total) for i, total in enumerate(sums)]
        high = [total - part for total, part in zip(sums, low)]
        return f"padding_high = array<i64: {', '.join(map(str, high))}>, padding_low = array<i64: {', '.join(map(str, low))}>"
    salt = generator.random()
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if " nn.conv " in line:  # a pool may not be left with padding alone
            lines[i] = re.sub(r"padding_high = array<i64: ([\d, ]+)>, padding_low = array<i64: ([\d, ]+)>", shift, line)
    return "\n".join(lines)


def shared_weights(text, generator):
    """One parameter in the place of two."""
    found = re.findall(r"nn\.variable @(\S+) : (tensor<\S+>) {init = .*kind = #nn<kind parameter>", text)
    pairs = [(a, b) for i, (a, kind) in enumerate(found) for b, other in found[i + 1:] if kind == other and "norm" not in a + b]
    if not pairs:
        return text
    kept, gone = generator.choice(pairs)
    text = re.sub(rf"^ *nn\.variable @{re.escape(gone)} : .*\n", "", text, flags=re.M)
    return text.replace(f"nn.read @{gone} ", f"nn.read @{kept} ")


def moved(name, value, shape, generator):
    """Lines that make a tensor of the same shape of a value by moving its elements, and the name of the result."""
    def kind(extents):
        return f"tensor<{''.join(f'{extent}x' for extent in extents)}f32>"
    whole, rank = kind(shape), len(shape)
    dim = generator.randrange(1, rank)
    which = generator.randrange(4)
    zeros = [0] * rank
    if which == 0:  # rolled along one dimension
        cut = generator.randint(1, shape[dim] - 1) if shape[dim] > 1 else 0
        if not cut:
            return [], value
        head, tail, start = list(shape), list(shape), list(zeros)
        head[dim], tail[dim], start[dim] = cut, shape[dim] - cut, cut
        return [f"%{name}a = nn.slice {value} {{size = array<i64: {text_of(head)}>, start = array<i64: {text_of(zeros)}>}} : ({whole}) -> {kind(head)}",
                f"%{name}b = nn.slice {value} {{size = array<i64: {text_of(tail)}>, start = array<i64: {text_of(start)}>}} : ({whole}) -> {kind(tail)}",
                f"%{name} = nn.concat %{name}b, %{name}a {{dim = {dim} : i64}} : ({kind(tail)}, {kind(head)}) -> {whole}"], f"%{name}"
    if which == 1:  # a box of it, framed
        low = [0] + [generator.randint(0, extent // 3) for extent in shape[1:]]
        size = [shape[0]] + [generator.randint(1, extent - start) for extent, start in zip(shape[1:], low[1:])]
        high = [extent - start - part for extent, start, part in zip(shape, low, size)]
        return [f"%{name}a = nn.slice {value} {{size = array<i64: {text_of(size)}>, start = array<i64: {text_of(low)}>}} : ({whole}) -> {kind(size)}",
                f"%{name} = nn.pad %{name}a {{high = array<i64: {text_of(high)}>, low = array<i64: {text_of(low)}>, value = 2.5e-01 : f64}} : ({kind(size)}) -> {whole}"], f"%{name}"
    if which == 2:  # the other way round, and back
        order = [0, *generator.sample(range(1, rank), rank - 1)]
        turned = [shape[i] for i in order]
        back = [order.index(i) for i in range(rank)]
        return [f"%{name}a = nn.transpose {value} {{permutation = array<i64: {text_of(order)}>}} : ({whole}) -> {kind(turned)}",
                f"%{name}b = nn.tanh %{name}a : ({kind(turned)}) -> {kind(turned)}",
                f"%{name} = nn.transpose %{name}b {{permutation = array<i64: {text_of(back)}>}} : ({kind(turned)}) -> {whole}"], f"%{name}"
    first = [1 if i == dim else extent for i, extent in enumerate(shape)]  # minus its first row along a dimension
    rest = [extent for i, extent in enumerate(shape) if i != dim]
    return [f"%{name}a = nn.slice {value} {{size = array<i64: {text_of(first)}>, start = array<i64: {text_of(zeros)}>}} : ({whole}) -> {kind(first)}",
            f"%{name}b = nn.reshape %{name}a : ({kind(first)}) -> {kind(rest)}",
            f"%{name}c = nn.broadcast %{name}b {{dims = array<i64: {text_of(i for i in range(rank) if i != dim)}>}} : ({kind(rest)}) -> {whole}",
            f"%{name} = nn.sub {value}, %{name}c : ({whole}, {whole}) -> {whole}"], f"%{name}"


def text_of(numbers):
    return ", ".join(map(str, numbers))


def moved_elements(text, generator):
    """Between some values of @train and their users: slices, pads, transposes. The other programs are left to the
    compiler to derive."""
    programs = {match[1]: match for match in PROGRAM.finditer(text)}
    train = programs["train"][0]
    found = list(VALUE.finditer(train))
    chosen = generator.sample(found, min(len(found), generator.randint(1, 2)))
    for i, value in enumerate(sorted(chosen, key=lambda value: -value.start())):
        extents = [int(extent) for extent in value[2].split("x")[:-1]]
        lines, result = moved(f"moved{i}", value[1], extents, generator)
        users = re.sub(rf"{value[1]}\b", result, train[value.end():])
        train = train[:value.end()] + "".join(f"\n      {line}" for line in lines) + users
    for value in list(VALUE.finditer(train))[-1:]:  # something that prediction gives out: @train has no outputs
        train = train.removesuffix("    }") + f'      nn.output "moved", {value[1]} : tensor<{value[2]}f32>\n    }}'
    for match in sorted(programs.values(), key=lambda match: -match.start()):
        text = text[:match.start()] + (train if match[1] == "train" else "") + text[match.end():]
    return text


def edited(text, generator):
    """The text of stage nn, changed."""
    text = re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", re.sub(r"^#loc.*\n", "", text, flags=re.M))
    for edit in generator.sample([shifted_padding, shared_weights, moved_elements], generator.randint(1, 3)):
        text = edit(text, generator)
    return text
