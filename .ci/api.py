#!/usr/bin/env python3
"""Compares the public declarations of the sources with those of another commit: api.py COMMIT

Fails if one is gone or is written differently, and no line that CHANGELOG.md has gained since then names it. It reads
declarations as text, and compiles nothing: one that moves to another type is the same, and so is one with further
parameters that have defaults. For those that move to another module, a line with `import MODULE` is enough.
"""
import collections
import io
import re
import subprocess
import sys
import tarfile

COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"""(?:.|\n)*?"""|#*"(?:\\.|[^"\\\n])*"#*', re.S)
ATTRIBUTE = re.compile(r"@\w+(?:\((?:[^()]|\([^()]*\))*\))?\s+")
# Without effect on callers.
MODIFIER = re.compile(r"\b(?:nonisolated|final|consuming|borrowing|mutating|override|convenience|indirect)(?:\(\w+\))? ")
KIND = r"(?:func|var|let|init|subscript|case|typealias|associatedtype|struct|class|enum|protocol|actor|macro)"
TYPE = re.compile(r"\b(struct|class|enum|protocol|actor|extension)\s+([\w.]+)")
NAME = re.compile(rf"\b{KIND}\b\s*(`?[\w]+`?|[^\s\w(]+)?")
Declaration = collections.namedtuple("Declaration", "module scope name text")


def git(*command):
    return subprocess.run(["git", *command], check=True, capture_output=True).stdout


def statements(text):
    """The text before each `{`, `}` and end of a statement, and that character."""
    text = COMMENT_OR_TEXT.sub(lambda found: '""' if found[0].endswith('"') else "", text)
    begin = depth = 0
    for place, character in enumerate(text):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif depth == 0 and character in "{}\n;":
            # A statement continues behind one of these, and where the next line begins with one of these.
            if character == "\n" and (re.search(r"[,=&:]$|->$|\bcase$", text[begin:place].rstrip()) or re.match(
                    r"\s*(?:\{|->|where\b|throws\b|async\b|[.,?:&=])", text[place : place + 400])):
                continue
            yield text[begin:place].strip(), character
            begin = place + 1


def declarations(module, text):
    """The public declarations of a file."""
    scopes = []  # what each open brace belongs to: kind, name, and whether it is public
    pending = ""
    for statement, end in statements(text):
        statement = " ".join(f"{pending} {statement}".split())
        pending = ""
        if end != "}" and re.fullmatch(r"(?:@\w+(?:\(.*\))?|#\w+.*)?", statement) and end == "\n":
            pending = statement if statement.startswith("@") else ""
            continue
        plain = MODIFIER.sub("", ATTRIBUTE.sub("", statement + " ")).strip()
        kind, scope, is_public = scopes[-1] if scopes else ("", "", False)
        inherits = is_public and (kind == "protocol" or kind == "enum" and plain.startswith("case "))
        if re.match(rf"(?:public|open) ", plain) or inherits and re.match(rf"(?:static )?{KIND}\b", plain):
            plain = re.sub(r"^(public|open) ", "", plain)
            # The value of a constant, a variable or a case is no part of its type.
            if re.match(r"(?:\w+(?:\(\w+\))? )*(?:var|let|case) ", plain) and "(" not in plain:
                plain = re.sub(r" = [^,]*", "", plain)
            elif re.match(r"(?:\w+(?:\(\w+\))? )*(?:var|let) ", plain):
                plain = re.sub(r" = .*", "", plain)
            name = NAME.search(plain)
            if name:
                word = (name[1] or scope.split(".")[-1]).strip("`")
                texts = [f"case {one.strip()}" for one in re.split(r",(?![^(]*\))", plain[5:])] if plain.startswith("case ") else [plain]
                for one in texts:
                    yield Declaration(module, scope, NAME.search(one)[1] if plain.startswith("case ") else word, one)
        if end == "{":
            found = TYPE.search(plain)
            if found and not re.search(r"\bfunc\b|\bvar\b|\binit\b", plain[: found.start()]):
                outer = "" if found[1] == "extension" or not scope else scope + "."
                is_declared_public = bool(re.match(r"(?:public|open) ", MODIFIER.sub("", ATTRIBUTE.sub("", statement + " "))))
                scopes.append((found[1], outer + found[2], is_declared_public))
            else:
                scopes.append(("body", scope, False))
        elif end == "}" and scopes:
            scopes.pop()


def public(commit):
    found = []
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit, "Sources"))) as archive:
        for member in archive:
            parts = member.name.split("/")
            if member.isfile() and member.name.endswith(".swift") and parts[1] != "echo-server":
                found += declarations(parts[1], archive.extractfile(member).read().decode())
    return found


def split(text):
    """The parts of a function's declaration: before the parameters, each of these, and behind them."""
    begin = text.find("(")
    place, depth, parts = begin + 1, 1, [""]
    while begin >= 0 and depth and place < len(text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text[place], 0)
        if depth == 1 and text[place] == ",":
            parts.append("")
        elif depth:
            parts[-1] += text[place]
        place += 1
    return text[:begin], [part.strip() for part in parts], text[place:]


def takes_the_same_calls(old, new):
    """True if the new function differs only by further parameters that have defaults, or the new type by conformances."""
    if re.match(r"(?:struct|class|enum|actor|protocol) ", old):
        return new.startswith(old)
    (name, parameters, result), (other, others, returned) = split(old), split(new)
    further = [one for one in others if one not in parameters]
    return name == other and result == returned and parameters == [one for one in others if one not in further] and all(
        " = " in one for one in further)


def breaks(old, new):
    """What is in the one and not in the other, unless it has only moved."""
    missing = collections.Counter((one.module, one.text) for one in old)
    missing.subtract((one.module, one.text) for one in new)
    present = collections.defaultdict(list)
    for one in new:
        present[one.module, one.name].append(one.text)
    for one in sorted(set(old) - set(new)):
        if any(takes_the_same_calls(one.text, text) for text in present[one.module, one.name]):
            continue
        if missing[one.module, one.text] > 0:
            missing[one.module, one.text] -= 1
            yield one


def main():
    base = sys.argv[1]
    old, new = public(base), public(sys.argv[2] if len(sys.argv) > 2 else "HEAD")
    gained = git("diff", "--unified=0", base, "--", "CHANGELOG.md").decode()
    gained = "\n".join(line for line in gained.split("\n") if line.startswith("+"))
    arrived = collections.Counter((one.module, one.text) for one in new)
    arrived.subtract((one.module, one.text) for one in old)
    announced = {text for (module, text), count in arrived.items() if count > 0 and re.search(rf"\bimport {module}\b", gained)}
    unsaid = [one for one in breaks(old, new) if one.text not in announced
              and not re.search(rf"(?<!\w){re.escape(one.name)}(?!\w)", gained)]
    for one in unsaid:
        print(f"error: {one.module}, {one.scope or 'a function'}: {one.text}")
    print(f"{len(new)} public declarations, {len(list(breaks(old, new)))} gone, moved or different since {base}, {len(unsaid)} of them unsaid")
    if unsaid:
        sys.exit("error: say in CHANGELOG.md what to write instead")


main()
