#!/usr/bin/env python3
"""Counts habits of language that make readers stop: prose.py [--list] [--write] [FILE...]

Reads the comments of Sources, and the pages README.md, CONTRIBUTING.md, CHANGELOG.md and docs, without their code. Each
habit has a maximum in .ci/prose-limits.txt; more is an error, and the lines that have it are printed. Fewer is an error
too, so that the maximum falls: `--write` writes the counts of today there, and refuses to raise one. `--list` prints
every line that has a habit, of all files or of those that are named.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = ROOT / ".ci" / "prose-limits.txt"

# Name: what to write instead, and the patterns.
HABITS = {
    "who": (
        "name the actor: the caller, the settling thread, the peer",
        r"\b(?:of|to|for|by|that|and|if|than|but) who\b(?! (?:are|want)\b)",
        r"[,;:] who (?:settles|closes|hangs|reads|writes|looks|wakes|asks|waits|may)\b",
        r"(?:^|[.:;] )Who \w+(?:s|es)\b(?!.*\?)",
        r"\b[Ww]hoever\b",
    ),
    "people": (
        "no waiter, no process, another thread: software is no person",
        r"\b(?:nobody|somebody|anybody|everybody|no one|someone|anyone)\b",
    ),
    "extraposed": (
        "put the clause next to its noun",
        r"\b(?:a|an|the|no|each|every) [a-z]+ (?:is|has|was|were|comes?|goes|are|have) (?:been )?"
        r"[a-z]+(?:ed|en|ne|ft|nt|st|id|lt|un|ut|ld|wn|de|ts|es|ns)? "
        r"(?:that|which|whose|of which) (?!is not\b)",
    ),
    "so": (
        "write 'so' or 'therefore' at the head of the clause",
        r"\b(?:it|that|which|hop|loop|they|this|these|one) so (?:is|costs?|has|have|can|does|do|are|was|were|keeps?)\b",
        r"\b(?!and\b)[a-z]+ so (?:costs?|starves?|keeps|stands|runs|takes|gives)\b",
        r"\bSo (?:it|they) (?:goes|does|do)\b(?! not)",
    ),
    "fragment": (
        "write a sentence: 'Accessed only on the loop's thread.'",
        r"^(?:/// |// )?Of (?:the|a|an|who|its|each|this)\b[^,]*\.$",
    ),
    "same": (
        "repeat the noun, or write what differs",
        r"^/// (?-i:The) same\b",
        r"\b(?:is|are|does|do|be|says?|means?|holds?|looks?) the same(?=[.;:,|]| \||$| as\b| but\b| thing\b)",
        r"\ball the same\b",
        r"\bthe same (?:for|but|thing)\b", r"\bthe same[.;:|]", r"\| the same(?: \||[,;.]| with| on\b)",
        r"\| The same\b",
    ),
    "soft": (
        "use the field's verb: release, notify, deliver, return, expire",
        r"\blet(?:s|ting)? go\b", r"\b(?:is|are|was|were|be|been|gets?) told\b(?! to\b)", r"\bby hand\b",
        r"\b(?:is|are) gone\b", r"\banswers? (?:true|false|whether|how many|with an? error)\b",
        r"\bbrings?\b(?! about)", r"\bhears? of\b", r"\btells? (?:it|them|him|you) (?:of|why|that|once)\b",
        r"\bhas it that\b",
        r"\b(?:bytes|data|input|what|it|they|answers?|lines?|errors?|signals?|requests?|more) (?:has |have )?(?:comes?|came)\b",
        r"\bwith(?:out)? a word\b", r"\bfor want of\b", r"\bgo(?:es)? (?:on|its way)\b(?! (?:a |the |with the ))",
        r"\bwith it goes\b",
    ),
    "idiom": (
        "also when, at most, forever, during, a number of",
        r"\blikewise\b", r"\bin the midst\b", r"\bfor ever\b", r"\bas good as\b", r"\bso many\b",
        r"\bso much\b(?! (?:as|that))",
        r"[,;(] be (?:it|that) (?:the|a|an|one|only|of)\b", r"\band be it\b", r"\bwithout further ado\b",
        r"\bdear(?:er|est)?\b",
        r"\bhad better\b", r"\band (?:its|their) kin\b", r"\bpassed over\b", r"\bbe had\b", r"\bas it stands\b",
        r"\bwhich is to say\b",
    ),
}


def comments_of(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := re.search(r"(?:^|\s)//+ ?(.*)", line):
            yield number, line.strip() if line.strip().startswith("//") else "// " + match[1]


def prose_of(path):
    """The numbered lines of a page outside of code, without what is between backquotes."""
    fence = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.match(r"\s*(```|~~~)", line):
            fence = not fence
        elif not fence and not line.startswith(("    ", "<!--")):
            yield number, re.sub(r"`[^`]*`", "`x`", line)


def findings(paths):
    """Each (habit, path, number, line)."""
    for path in paths:
        name = str(path.relative_to(ROOT))
        for number, line in prose_of(path) if path.suffix == ".md" else comments_of(path):
            for habit, (_, *patterns) in HABITS.items():
                flags = 0 if habit in ("who", "fragment", "so") else re.IGNORECASE
                if any(re.search(pattern, line, flags) for pattern in patterns):
                    yield habit, name, number, line


def all_paths():
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    for folder in ("Sources", "docs"):
        pages += (ROOT / folder).rglob("*")
    return sorted(path for path in pages if path.suffix in (".md", ".swift", ".h"))


def main():
    arguments = sys.argv[1:]
    names = [Path(name).resolve() for name in arguments if not name.startswith("--")]
    found = list(findings(names or all_paths()))
    if "--list" in arguments:
        for habit, name, number, line in found:
            print(f"{habit}: {name}:{number}: {line}")
        return
    counts = {habit: sum(item[0] == habit for item in found) for habit in HABITS}
    limits = dict(line.split() for line in LIMITS.read_text().splitlines()) if LIMITS.exists() else {}
    code = 0
    for habit, count in counts.items():
        limit = int(limits.get(habit, count))
        if count > limit:
            for _, name, number, line in (item for item in found if item[0] == habit):
                print(f"{name}:{number}: {line}")
            print(f"error: {count} lines with the habit '{habit}', at most {limit} are allowed: {HABITS[habit][0]}")
            code = 1
        elif count < limit and "--write" not in arguments:
            print(f"error: only {count} lines with the habit '{habit}' are left, of {limit}: run .ci/prose.py --write")
            code = 1
    if "--write" in arguments and code == 0:
        LIMITS.write_text("".join(f"{habit} {count}\n" for habit, count in counts.items()))
    sys.exit(code)


main()
