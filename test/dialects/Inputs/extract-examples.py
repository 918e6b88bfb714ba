"""Prints every ```mlir example of the given .td files, separated for --split-input-file.

Examples leave out where their operands come from; each that is used and not defined becomes the result of an
unregistered op of the type that the example states for it: operand i of `op %a, %b ... : (A, B) -> ...` or `... : A,
B`.
"""
import re
import sys


def split_types(text):
    """Splits at commas outside of brackets."""
    types, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<([") - (c in ">)]")
        if c == "," and depth == 0:
            types.append(text[start:i])
            start = i + 1
    return [t.strip() for t in types + [text[start:]]]


def statements(example):
    """Lines, with those joined that continue an op."""
    joined = []
    for line in map(str.strip, example.splitlines()):
        if joined and not re.match(r"%|}|[a-z]+\.[a-z]", line):
            joined[-1] += " " + line
        else:
            joined.append(line)
    return joined


def operand_types(line):
    """(operand, type) pairs of a line that holds one op."""
    body = line.split(" = ", 1)[-1]
    head, _, tail = body.rpartition(" : ")
    operands = re.findall(r"%\w+(?! =)\b", head)
    types = tail.replace("->", "→").split("→")[0].strip()  # so that > counts as a bracket only
    return zip(operands, split_types(types.removeprefix("(").removesuffix(")")))


def definitions(example):
    known = set(re.findall(r"^ *(%\w+)(?::\d+)? = ", example, re.MULTILINE))
    known |= set(re.findall(r"(%\w+): ", example))  # arguments of a program
    known |= set(re.findall(r"(%\w+) = %", example))  # arguments of a cluster
    for line in statements(example):
        for operand, type in operand_types(line):
            if operand not in known:
                known.add(operand)
                yield f'{operand} = "test.value"() : () -> {type}\n'


examples = []
for path in sys.argv[1:]:
    with open(path) as file:
        examples += re.findall(r"```mlir\n(.*?)```", file.read(), re.DOTALL)
assert examples, "no examples found"
print("\n// -----\n".join("".join(definitions(e)) + e for e in examples))
