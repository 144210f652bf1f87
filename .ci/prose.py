#!/usr/bin/env python3
"""Points at habits of language that make readers stop: prose.py [FILE...]

Reads the comments of Sources, and the pages README.md, CONTRIBUTING.md, CHANGELOG.md and docs, without their code; or the
files that are named. It is advice: the patterns are crude, a line that reads well may stay as it is, and the exit code is
always 0.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

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
    paths = [Path(name).resolve() for name in sys.argv[1:]] or all_paths()
    for habit, name, number, line in findings(paths):
        print(f"{name}:{number}: {habit} ({HABITS[habit][0]}): {line}")


main()
