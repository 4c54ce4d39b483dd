#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares heddle's instruction decoder with nvdisasm, instruction by instruction.

Takes every distinct instruction of the kernels in the given libraries or
cubins, lets both decode it, and compares mnemonic, guard, operands in their
order, constants, offsets and branch targets. With --life-ranges also which
registers, uniform registers and predicates are read and written, by the life
ranges that nvdisasm prints (which needs ptxas).

usage: check_sass.py --dump build/bin/sass_dump [--arch 90] [--kernels N]
                     [--life-ranges] [--out FILE.json] FILE...

--kernels N checks only N kernels, spread over all. nvdisasm is taken from
--nvdisasm, PATH, or the Python package nvidia-cuda-nvdisasm.
"""

import argparse
import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

CHUNK = 200000
INSTRUCTION = 16
# EXIT, an endless loop and NOP: what the life-range template is filled with.
EXIT = struct.pack("<QQ", 0x000000000000794D, 0x000FEA0003800000)
LOOP = struct.pack("<QQ", 0xFFFFFFFC00FC7947, 0x000FC0000383FFFF)
NOP = struct.pack("<QQ", 0x0000000000007918, 0x000FC00000000000)
# Instructions that end or leave the code: a template with them has other life
# ranges behind.
FLOW = {"BRA", "BRX", "JMP", "JMX", "BRXU", "JMXU", "CALL", "RET", "EXIT",
        "KILL", "BSSY", "BSYNC", "BREAK", "WARPSYNC", "ENDCOLLECTIVE", "LEPC",
        "BPT", "YIELD"}


def find_nvdisasm(given):
    if given:
        return given
    found = shutil.which("nvdisasm")
    if found:
        return found
    for folder in sys.path:
        for path in pathlib.Path(folder or ".").glob("nvidia/*/bin/nvdisasm"):
            return str(path)
    return None


# --- what nvdisasm prints ---------------------------------------------------

LINE = re.compile(r"^\s*/\*([0-9a-f]+)\*/\s+(.*?)\s*;", re.M)
HEAD = re.compile(r"^(?:(@!?U?P(?:\d+|T))\s+)?([A-Z0-9_]+)(\S*)\s*(.*)$")
TOKEN = re.compile(
    r"(?P<const>c\[0x(?P<bank>[0-9a-f]+)\]|cx\[(?P<cx>UR\d+|URZ)\])"
    r"\s*\[(?P<inner>[^\]]*)\]"
    r"|(?P<reg>!?\b(?:UR|UP|R|P)(?:\d+|Z|T)\b)"
    r"|(?P<set>\bU?PR\b)"
    r"|(?P<special>\bSR(?:Z|_\w+|\d+)\b(?:\.\w+)?)"
    r"|(?P<barrier>(?<![\w.])B\d+\b)"
    r"|(?P<skip>\bSB\d+|\bgsb\d|\{[^}]*\}|\b(?:ARRAY_)?[123]D\w*|\bCUBE\w*)"
    r"|\+?(?P<hex>-?0x[0-9a-f]+)"
    r"|(?<![\w.])(?P<float>[+-]?(?:INF|QNAN|SNAN)\b"
    r"|[+-]?\d+(?:\.\d+)?(?:e[+-]\d+)?)")
NULL = {"RZ", "URZ", "PT", "UPT", "!PT", "!UPT"}


def mask32(text):
    return "0x%x" % (int(text, 16) & 0xFFFFFFFF)


@functools.lru_cache(maxsize=200000)
def operands(mnemonic, text):
    """The operands of nvdisasm's text in sass_dump's notation."""
    out = []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if match["const"]:
            if match["cx"]:
                out.append(match["cx"])
            offset = "0"
            for part in re.findall(r"UR\d+|URZ|R\d+|RZ|-?0x[0-9a-f]+",
                                   match["inner"]):
                if part[-2:] == "RZ":
                    continue
                if part[0] in "UR":
                    out.append(part)
                else:
                    offset = "%x" % (int(part, 16) & 0xFFFFFFFF)
            bank = "x" if match["cx"] else str(int(match["bank"], 16))
            out.append("c%s:%s" % (bank, offset))
        elif kind == "reg":
            if match["reg"] not in NULL:
                out.append(match["reg"])
        elif kind == "set":
            out.append(match["set"])
        elif kind == "special":
            out.append("SR")
        elif kind == "barrier":
            out.append(match["barrier"])
        elif kind == "hex":
            out.append(mask32(match["hex"]))
        elif kind == "float":
            out.append("F" + match["float"])
    return tuple(out)


def float_matches(text, bits, mnemonic):
    """Whether the 32 bits of an immediate print as the float `text`."""
    text = text[1:]
    if "NAN" in text:
        # Single, double (its upper half), half or bfloat16.
        return (bits & 0x7F800000) == 0x7F800000 or (
            bits & 0x7FF00000) == 0x7FF00000 or (bits & 0x7C00) == 0x7C00
    value = float(text.replace("INF", "inf"))
    if mnemonic[0] == "D":
        return struct.pack("<d", value)[4:] == struct.pack("<I", bits)
    single = struct.pack("<f", value) if abs(value) < 3.5e38 or value in (
        float("inf"), float("-inf")) else b""
    if single == struct.pack("<I", bits):
        return True
    # The upper half of a double, in conversions.
    return struct.pack("<d", value)[4:] == struct.pack("<I", bits)


def half_matches(text, bits, brain):
    text = text[1:]
    if "NAN" in text:
        return True
    value = float(text.replace("INF", "inf"))
    if brain:
        return struct.pack("<f", value)[2:] == struct.pack("<H", bits)
    try:
        return struct.pack("<e", value) == struct.pack("<H", bits)
    except OverflowError:
        return False


def same_operands(mnemonic, modifiers, theirs, ours):
    """Whether two operand lists mean the same."""
    i = 0
    for mine in ours:
        if mine[0] == "?":
            # A descriptor of memory, which is not printed for every chip.
            if i < len(theirs) and theirs[i] == mine[1:]:
                i += 1
            continue
        if i >= len(theirs):
            # Counts of 0 are not printed.
            return mnemonic == "BAR" and mine == "0x0" and i == len(ours) - 1
        other = theirs[i]
        if other == mine:
            i += 1
        elif other[0] == "F" and mine.startswith("0x"):
            bits = int(mine, 16)
            # Two halves of 16 bits, the upper one first.
            pair = (mnemonic[0] == "H" or mnemonic == "VHMNMX") and i + 1 < len(theirs) and \
                theirs[i + 1][0] == "F"
            if pair:
                brain = "BF16_V2" in modifiers
                if not half_matches(other, bits >> 16, brain) or \
                        not half_matches(theirs[i + 1], bits & 0xFFFF, brain):
                    return False
                i += 2
            elif float_matches(other, bits, mnemonic) or (
                    mnemonic in ("HADD2", "MUFU", "F2F", "F2I", "FRND") and
                    half_matches(other, bits & 0xFFFF, False)):
                i += 1
            else:
                return False
        elif other == "SR" and mine.startswith("SR"):
            i += 1
        elif other.startswith("0x") and mine[0] == "T":
            if int(other, 16) != int(mine[1:]) & 0xFFFFFFFF:
                return False
            i += 1
        elif mnemonic == "BAR" and mine == "0x0" and "0x" not in other:
            continue
        else:
            return False
    rest = theirs[i:]
    # Lane masks of MOV are no operand to us.
    return not rest or (mnemonic == "MOV" and len(rest) == 1 and
                        rest[0].startswith("0x"))


def run_nvdisasm(nvdisasm, arch, words, folder, name):
    """nvdisasm's lines of raw instructions; None where it knows none."""
    count = len(words) // INSTRUCTION
    result = [None] * count
    places = list(range(count))
    path = os.path.join(folder, name)
    for _ in range(8):
        with open(path, "wb") as file:
            if len(places) == count:
                file.write(words)
            else:
                for place in places:
                    file.write(words[place * 16:place * 16 + 16])
        done = subprocess.run([nvdisasm, "-b", arch, "-ndf", path],
                              capture_output=True, text=True, errors="replace")
        bad = {int(x, 16) // INSTRUCTION for x in re.findall(
            r"at address (0x[0-9a-f]+)", done.stderr)}
        if not bad:
            for offset, text in LINE.findall(done.stdout):
                result[places[int(offset, 16) // INSTRUCTION]] = text
            os.unlink(path)
            return result, places
        places = [p for i, p in enumerate(places) if i not in bad]
        if not places:
            return result, places
    raise RuntimeError("nvdisasm keeps finding illegal instructions")


def run_dump(dump, arch, words):
    return subprocess.run([dump, "decode", str(arch)], input=words,
                          capture_output=True, check=True
                          ).stdout.decode().split("\n")[:-1]


def compare_chunk(job):
    """-> (checked, unknown by mnemonic, mismatches, special registers)."""
    nvdisasm, dump, arch, words, name, folder, template = job
    sm = "SM90a" if arch == 90 else "SM%d" % arch
    theirs, places = run_nvdisasm(nvdisasm, sm, words, folder, name)
    # Targets are relative: both must see the instruction at the same offset.
    if len(places) * INSTRUCTION != len(words):
        words = b"".join(words[p * 16:p * 16 + 16] for p in places)
        theirs = [theirs[p] for p in places]
    ours = run_dump(dump, arch, words)
    unknown = collections.Counter()
    illegal = 0
    mismatches = []
    bad = []
    specials = set()
    ranges = life_ranges(nvdisasm, words, theirs, folder, name, template) \
        if template else {}
    for at, (text, line) in enumerate(zip(theirs, ours)):
        word = words[at * 16:at * 16 + 16]
        guard, mnemonic, _, mine, reads, writes = line.split("\t")
        head = HEAD.match(text) if text else None
        if head is None or "INVALID" in text or "???" in text:
            illegal += 1
            continue
        if not mnemonic:
            unknown[head[2]] += 1
            bad.append(word)
            continue
        mine = tuple(mine.split())
        # For some chips a comma is in the wrong place.
        head_text = re.sub(r"(\w)desc, ?\[", r"\1, desc[", head[4])
        other = operands(head[2], head_text)
        why = ""
        if head[2] != mnemonic:
            why = "mnemonic"
        elif (head[1] or "") != guard:
            why = "guard"
        elif other != mine and not same_operands(mnemonic, head[3], other,
                                                 mine):
            why = "operands"
        elif at in ranges:
            why = differing_ranges(mnemonic, ranges[at], reads, writes)
        if why:
            bad.append(word)
            mismatches.append((why, mnemonic + head[3], text, line,
                               "%016x_%016x" % struct.unpack("<QQ", word)[::-1]))
        for special, number in zip(re.findall(r"\bSR(?:Z|_[\w.]+|\d+)", text),
                                   re.findall(r"\bSR(\d+)", line)):
            specials.add((special, int(number)))
    return len(theirs), illegal, unknown, mismatches, bad, specials


# --- life ranges ------------------------------------------------------------

def text_section(image):
    table, = struct.unpack_from("<Q", image, 0x28)
    count, = struct.unpack_from("<H", image, 0x3C)
    for i in range(count):
        _, kind, flags, _, offset, size = struct.unpack_from(
            "<IIQQQQ", image, table + 64 * i)
        if kind == 1 and flags & 4:
            return offset, size
    raise RuntimeError("the template has no code")


def make_template(arch, folder):
    """A cubin with room for many instructions, or None."""
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        return None
    source = os.path.join(folder, "template.ptx")
    image = os.path.join(folder, "template.cubin")
    sm = "sm_90a" if arch == 90 else "sm_%d" % arch
    with open(source, "w") as file:
        file.write(".version 8.0\n.target %s\n.address_size 64\n"
                   ".visible .entry template(.param .u64 a) {\n"
                   ".reg .u64 %%rd<2>;\nld.param.u64 %%rd1, [a];\n" % sm)
        for i in range(12000):
            file.write("st.volatile.global.u32 [%%rd1+%d], %d;\n" %
                       (4 * (i % 4096), i))
        file.write("ret;\n}\n")
    done = subprocess.run([ptxas, "-arch", sm, "-O0", source, "-o", image],
                          capture_output=True, text=True)
    if done.returncode != 0:
        print("ptxas: " + done.stderr.strip(), file=sys.stderr)
        return None
    return image


def life_ranges(nvdisasm, words, texts, folder, name, template):
    """{instruction: {register: what}}, what: ^ written, v read, x both."""
    with open(template, "rb") as file:
        image = file.read()
    offset, size = text_section(image)
    room = size // INSTRUCTION - 4
    chosen = []
    for at, text in enumerate(texts):
        head = HEAD.match(text) if text else None
        if head and head[2] not in FLOW and "INVALID" not in text:
            chosen.append(at)
    result = {}
    for start in range(0, len(chosen), room):
        part = chosen[start:start + room]
        body = b"".join(words[at * 16:at * 16 + 16] for at in part)
        body += EXIT + LOOP
        body += NOP * (size // INSTRUCTION - len(body) // INSTRUCTION - 2)
        body += EXIT + LOOP
        path = os.path.join(folder, name + ".cubin")
        with open(path, "wb") as file:
            file.write(image[:offset] + body + image[offset + size:])
        done = subprocess.run([nvdisasm, "-c", "-plr", "-lrm", "narrow", path],
                              capture_output=True, text=True, errors="replace")
        os.unlink(path)
        parsed = parse_ranges(done.stdout)
        for place, at in enumerate(part):
            if place in parsed:
                result[at] = parsed[place]
    return result


def parse_ranges(text):
    lines = text.split("\n")
    rules = [i for i, line in enumerate(lines) if "// +---" in line]
    if len(rules) < 2:
        return {}
    left = lines[rules[0]].index("// +") + 3
    border = lines[rules[0]][left:]
    edges = [i for i, char in enumerate(border) if char == "+"]
    names = [x.strip() for x in lines[rules[0] + 1][left:].split("|")[1:-1]]
    header = [lines[i][left:] for i in range(rules[0] + 2, rules[1])]
    prefixes = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
    columns = {}
    for section, name in enumerate(names):
        for column in range(edges[section] + 1, edges[section + 1]):
            digits = "".join(row[column] for row in header
                             if row[column].isdigit())
            if digits and name in prefixes:
                columns[column] = "%s%d" % (prefixes[name], int(digits))
    result = {}
    for line in lines[rules[1]:]:
        match = LINE.match(line)
        if not match or "// |" not in line:
            continue
        row = line[line.index("// |") + 3:]
        result[int(match[1], 16) // INSTRUCTION] = {
            columns[i]: char for i, char in enumerate(row)
            if char in "^vx" and i in columns}
    return result


def differing_ranges(mnemonic, ranges, reads, writes):
    reads = set(reads.split())
    writes = set(writes.split())
    their_reads = {r for r, what in ranges.items() if what in "vx"}
    their_writes = {r for r, what in ranges.items() if what in "^x"}
    if mnemonic in ("LDGSTS", "LDG", "LD"):
        # The predicate that says whether to load is shown as written too.
        # Compiled loops use one for many loads, so that cannot be.
        their_writes = {r for r in their_writes if r[0] != "P"}
    if reads != their_reads:
        return "reads %s" % " ".join(sorted(reads ^ their_reads))
    if writes != their_writes:
        return "writes %s" % " ".join(sorted(writes ^ their_writes))
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dump", required=True, help="the built sass_dump")
    parser.add_argument("--nvdisasm")
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--kernels", type=int, default=0)
    parser.add_argument("--raw", help="check these raw instructions instead")
    parser.add_argument("--life-ranges", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()

    nvdisasm = find_nvdisasm(args.nvdisasm)
    if nvdisasm is None:
        print("skipped: there is no nvdisasm (pip install "
              "nvidia-cuda-nvdisasm)", file=sys.stderr)
        return 77
    select = [str(args.arch), str(args.kernels)]
    with tempfile.TemporaryDirectory(prefix="check_sass.") as folder:
        stats = {"kernels": 0, "instructions": 0}
        if args.raw:
            words = pathlib.Path(args.raw).read_bytes()
        else:
            done = subprocess.run([args.dump, "words"] + select + args.files,
                                  capture_output=True, check=True)
            words = done.stdout
            stats = json.loads(done.stderr)
        template = make_template(args.arch, folder) if args.life_ranges \
            else None
        if args.life_ranges and template is None:
            print("no life ranges: ptxas is needed for them", file=sys.stderr)
        jobs = [(nvdisasm, args.dump, args.arch,
                 words[i:i + CHUNK * INSTRUCTION], "chunk%d" % i, folder,
                 template)
                for i in range(0, len(words), CHUNK * INSTRUCTION)]
        checked = 0
        illegal = 0
        unknown = collections.Counter()
        mismatches = collections.OrderedDict()
        mismatch_count = 0
        bad = []
        names = collections.defaultdict(set)
        with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
            for part in pool.map(compare_chunk, jobs):
                checked += part[0]
                illegal += part[1]
                unknown.update(part[2])
                mismatch_count += len(part[3])
                for why, name, text, line, word in part[3]:
                    entry = mismatches.setdefault(
                        (why, name), {"why": why, "instruction": name,
                                      "count": 0, "nvdisasm": text,
                                      "heddle": line, "word": word})
                    entry["count"] += 1
                bad += part[4]
                for special, number in part[5]:
                    names[number].add(special)
        failed = 0
        if bad and not args.raw:
            with open(os.path.join(folder, "bad"), "wb") as file:
                file.write(b"".join(bad))
            done = subprocess.run(
                [args.dump, "blame"] + select + [file.name] + args.files,
                capture_output=True, check=True)
            failed = json.loads(done.stdout)["kernels"]
    # A special register has one name, or a number was decoded wrongly.
    ambiguous = {number: sorted(found) for number, found in names.items()
                 if len(found) > 1}
    worst = sorted(mismatches.values(), key=lambda x: -x["count"])
    result = {
        "arch": args.arch,
        "files": [os.path.basename(f) for f in args.files],
        "checked_kernels": stats["kernels"],
        "failed_kernels": failed,
        "checked_instructions": stats["instructions"],
        "distinct_instructions": checked,
        "illegal_instructions": illegal,
        "unknown_instructions": sum(unknown.values()),
        "mismatches": mismatch_count,
        "life_ranges": template is not None,
        "unknown": dict(unknown.most_common(40)),
        "ambiguous_special_registers": ambiguous,
        "worst": worst[:40],
    }
    text = json.dumps(result, indent=1)
    if args.out:
        pathlib.Path(args.out).write_text(text + "\n")
    print(text)
    return 1 if unknown or mismatch_count or ambiguous else 0


if __name__ == "__main__":
    sys.exit(main())
