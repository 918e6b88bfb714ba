#!/usr/bin/python3
"""Text of every stage with random changes through the compiler: success or errors, never a signal."""
import random
import re
import subprocess

from support import BIN, check, run, workspace

STAGES = ("nn", "train", "schedule", "exec")
BATCHES, SIZE = 8, 20  # texts of one batch are compiled by one process

MODEL = """
model mini(batch = 2) {
  input image : f32[batch, 3, 8, 8]
  input label : i32[batch]
  skip = relu(batch_norm(conv(image, 16, kernel = 3, padding = 1)))
  x = relu(conv(max_pool(skip, kernel = 2), 32, kernel = 3, padding = 1))
  x = concat(skip, conv_transpose(x, 16, kernel = 2, stride = 2))
  mask = conv(x, 1, kernel = 1)
  x = dropout(max_pool(x, kernel = 3, stride = 2, padding = 1), 0.25)
  logits = dense(flatten(x), 10)
  output probability = softmax(logits)
  loss = softmax_cross_entropy(logits, label) + 0.4 * mean(mask * mask)
  metric accuracy = accuracy(logits, label)
}
data {
  source image : axes = "NYX"
  source label : axes = "N"
}
train {
  optimizer = adam(lr = 0.05)
}
"""

TENSOR = re.compile(r"tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>")
RESULT = re.compile(r"^\s*(%\w+) = .*?(tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>)\s*$", re.MULTILINE)
ATTRIBUTE = re.compile(r'(?:, )?\b[\w.]+ = (?:"[^"]*"|array<[^>]*>|\[[^\[\]]*\]|\{[^{}]*\}|#\w+<[^<>]*>|[-\w.+]+(?: : \w+)?)')
LAYOUTS = {1: ["N4n"], 2: ["cn", "Nc8n"], 3: ["nwc", "nCw16c"], 4: ["nhwc", "nChw16c", "OIhw16i16o", "nchW4w"], 5: ["ndhwc"]}


def other_type(tensor, generator):
    """The tensor with another element type, extent, rank or layout."""
    extents = list(re.finditer(r"(?<=[<x])\d+x", tensor))
    kind = generator.randrange(4)
    if kind == 0:
        return re.sub(r"(f32|f64|i1|i8|i32|i64)(?=[,>])", generator.choice(["f64", "f16", "i1", "i32", "i16", "index"]), tensor, count=1)
    if kind == 1 and len(extents) in LAYOUTS:
        return re.sub(r", #nn.layout<\w+>", "", tensor)[:-1] + f", #nn.layout<{generator.choice(LAYOUTS[len(extents)])}>>"
    if not extents:
        return tensor
    place = generator.choice(extents)
    new = generator.choice(["", "2x1x"] if kind == 2 else ["0x", "1x", "3x", "17x", "1048576x", "4611686018427387904x"])
    return tensor[:place.start()] + new + tensor[place.end():]


def change_line(text, generator):
    """Drops, doubles or moves a line, or takes an attribute, number or symbol from it."""
    lines = text.split("\n")
    at = generator.randrange(len(lines))
    kind = generator.randrange(6)
    if kind == 0:
        lines[at] = ""
    elif kind == 1:
        lines.insert(at, lines[at])
    elif kind == 2:
        other = generator.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 3 and (found := list(ATTRIBUTE.finditer(lines[at]))):
        place = generator.choice(found)
        lines[at] = (lines[at][:place.start()] + lines[at][place.end():]).replace("{, ", "{")
    elif kind == 4 and (found := list(re.finditer(r"(?<![\w#.%@-])-?\d+(?![\w.])", lines[at]))):
        place = generator.choice(found)
        number = generator.choice(["0", "-1", "3", "127", "9223372036854775807"])
        lines[at] = lines[at][:place.start()] + number + lines[at][place.end():]
    elif kind == 5 and (found := re.findall(r"@[\w.]+", lines[at])):
        lines[at] = lines[at].replace(generator.choice(found), generator.choice(re.findall(r"@[\w.]+", text)), 1)
    return "\n".join(lines)


def mutated(text, generator):
    for _ in range(generator.randint(1, 2)):
        kind = generator.randrange(4)
        results = RESULT.findall(text)
        if kind == 0:  # a type, wherever it stands: most other changes of types are syntax errors
            tensor = generator.choice(sorted(set(TENSOR.findall(text))))
            text = text.replace(tensor, other_type(tensor, generator))
        elif kind == 1 and results:  # other operands of the same type
            value, tensor = generator.choice(results)
            other = generator.choice([name for name, its in results if its == tensor])
            text = re.sub(rf"(\S.*){value}\b", rf"\g<1>{other}", text, count=1)
        else:
            text = change_line(text, generator)
    return text


def compile_texts(directory, texts):
    path = directory / "mutated.mlir"
    path.write_text("\n// -----\n".join(texts))
    done = subprocess.run([str(BIN / "dlc-opt"), str(path), "--split-input-file", "--dlc-exec-pipeline=target=test:rules", "-o", "/dev/null"],
                          capture_output=True, text=True, errors="replace", timeout=120)
    return done.returncode, done.stderr


def main():
    directory = workspace()
    (directory / "mini.dl").write_text(MODEL)
    run("dlc", "compile", directory / "mini.dl", "--emit=nn", "-o", directory / "mini.mlir")
    generator = random.Random(5)
    for stage in STAGES:
        text = run("dlc-opt", directory / "mini.mlir", f"--dlc-{stage}-pipeline=target=test:rules")[0]
        code, errors = compile_texts(directory, [text])
        check(code == 0, f"the text of stage {stage} itself: {errors}")
        for _ in range(BATCHES):
            texts = [mutated(text, generator) for _ in range(SIZE)]
            if compile_texts(directory, texts)[0] in (0, 1):
                continue
            for single in texts:
                code, errors = compile_texts(directory, [single])
                check(code in (0, 1), f"stage {stage}: this text ends the compiler:\n{errors[:3000]}\n{single}")


main()
