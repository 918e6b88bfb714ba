#!/usr/bin/python3
"""The networks that random_models.py runs in CI have every operator and every option that the compiler's tables list,
every operator also in bf16 and in both families of layouts, of those that the compiler chose. Where the processor has no
bf16 instructions these are left out.

An option counts as drawn in each way in which its values can be written: each of its words, true and false, an int and
a list. `random_coverage.py FIRST LAST` says what the networks of these seeds lack.
"""
import collections
import re
import shutil
import sys

import random_models
from support import check, has, run

# Sections of the reference that networks draw from, and what of them they do not: what belongs to a run of many steps.
SECTIONS = ("Operators", "Optimizers", "Settings of train")
OF_A_RUN = {"epochs", "steps_per_epoch", "schedule", "early_stop", "monitor"}
OF_CALLS = {"name", "reuse", "trainable"}  # of any operator with parameters, and of functions
SIGNS = ("+", "-", "*", "/", "**", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "!")

Argument = collections.namedtuple("Argument", "name default forms")  # the forms in which a value can be written


def form_of(text):
    """Of a kind of values, as the reference has it: `an int`, `a list of ints`, `nearest`; nothing if it is any other."""
    if text.startswith("a list"):
        return "a list"
    return {"an int": "a number", "a number": "a number"}.get(text, "" if text.startswith("a ") else text)


def reference():
    """Section -> call or setting -> its arguments."""
    sections = collections.defaultdict(dict)
    for section in re.split(r"^## ", run("dlc", "help", "--markdown")[0], flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        if title not in SECTIONS:
            continue
        common, *entries = re.split(r"^### ", text, flags=re.M)
        for entry in entries:
            name, _, text = entry.partition("\n")
            sections[title][name] = arguments(text)
        sections[f"{title}, all"] = arguments(common)
    for title in SECTIONS:
        check(len(sections[title]) > 3, f"{len(sections[title])} entries of '{title}' in dlc help --markdown")
    for title in ("Operators", "Optimizers"):
        check(any(argument.forms for entry in sections[title].values() for argument in entry), f"no arguments read of '{title}'")
    common = {argument.name for argument in sections["Operators, all"]}
    check(common == OF_CALLS, f"arguments of every operator: {common}")
    return sections


def arguments(text):
    signature = re.search(r"```\n(.*?)\n```", text, re.S)
    found = []
    for item in re.findall(r"^- (`.*?)(?=^- |^\n|\Z)", text, re.M | re.S):
        name, default, kinds = re.match(r"`(\w+)(?: = ([^`]*))?`.*\(([^()]*)\)\s*$", " ".join(item.split())).groups()
        if signature:
            given = re.search(rf"[(,]\s*{name}(?: = (\[.*?\]|[^,)]*))?(?:\.\.\.)?(?=[,)])", " ".join(signature[1].split()))
            default = given[1]
        kinds = kinds.split(" or ")
        if "a tensor" in kinds:  # numbers are for the compiler to work out
            kinds = []
        forms = [form_of(kind) for kind in kinds if kind not in ("true", "false") or len(kinds) == 2]
        found.append(Argument(name, default, [form for form in forms if form]))
    return found


def split(text):
    """At the commas that no bracket or string encloses."""
    parts, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def calls(text):
    """(function, [arguments as they are written]) of each call, inner ones too."""
    for call in re.finditer(r"(?<!fn )(?<!model )\b([a-z]\w*)\(", text):
        depth, end = 1, call.end()
        while depth:
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        yield call[1], split(text[call.end():end - 1])


def written(value, forms):
    """The form in which a value is written."""
    if value in forms:
        return value
    return "a list" if value.startswith("[") else "a number"


def drawn_items(seed, sections):
    """What a seed's network has: NAME, (NAME, argument, form) and, of operators as they are compiled here, (NAME, "in bf16")
    and the like."""
    case = random_models.Case(seed)
    case.compile()
    shutil.rmtree(case.directory)
    options, text = case.options, case.graph.text()
    if options.is_edited:  # which leaves outputs out
        text = re.sub(r"^  output .*\n", "", text, flags=re.M)
    operators, tables = sections["Operators"], sections["Operators"] | sections["Optimizers"]
    own = re.findall(r"^fn (\w+)\(", text, re.M)
    items = set()
    for name, given in calls(text):
        kind = "a function" if name in own else "an operator"
        named = dict(match.groups() for part in given if (match := re.match(r"(\w+) = (?!=)(.*)", part)))
        for common in sections["Operators, all"]:
            if common.name in named:
                items |= {(kind, common.name), (kind, common.name, written(named[common.name], common.forms))}
        if name not in tables:
            continue
        items.add((name,))
        if name in operators:
            items |= {(name, f"in layouts {case.family}")} | ({(name, "in bf16")} if options.arithmetic == random_models.BF16 else set())
        for place, argument in enumerate(tables[name]):
            value = named.get(argument.name)
            if value is None and place < len(given) and not re.match(r"\w+ = (?!=)", given[place]):
                value = given[place]
            if value is not None:
                items |= {(name, argument.name), (name, argument.name, written(value, argument.forms))}
            elif argument.default in argument.forms:
                items.add((name, argument.name, argument.default))
    items |= {(setting,) for setting in sections["Settings of train"] if re.search(rf"[{{;] {setting} = ", text)}
    items |= {(sign,) for sign in SIGNS if re.search(rf"(?<![*<>=!&|]){re.escape(sign)}(?![*<>=!&|])", re.sub(r'"[^"]*"', "", text))}
    return items


def wanted_items(sections):
    items = {(sign,) for sign in SIGNS}
    for section in SECTIONS:
        for name, its_arguments in sections[section].items():
            if name in OF_A_RUN:
                continue
            items.add((name,))
            if section == "Operators":
                items |= {(name, "in layouts blocked"), (name, "in layouts channels_last")}
                items |= {(name, "in bf16")} if has("avx512_bf16") else set()
            for argument in its_arguments:
                items.add((name, argument.name))
                items |= {(name, argument.name, form) for form in argument.forms}
    for kind in ("an operator", "a function"):
        items |= {(kind, "name"), (kind, "reuse", "true"), (kind, "trainable", "false")}
    return items


def main():
    sections = reference()
    wanted = wanted_items(sections)
    seeds = range(*map(int, sys.argv[1:])) if sys.argv[1:] else random_models.SEEDS
    drawn = set().union(*(drawn_items(seed, sections) for seed in seeds))
    lacking = sorted(" ".join(item) for item in wanted - drawn)
    check(not lacking, "no network of SEEDS has\n  " + "\n  ".join(lacking))


if __name__ == "__main__":
    main()
