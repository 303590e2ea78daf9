"""Records what each ecosystem's own implementation says, for tests that run without it.

usage: python record.py ORACLE [SEED [VERSIONS [REQUIREMENTS]]] > ../ORACLE.json

ORACLE is npm, maven, go, rust, rubygems, composer, erlang or poetry. The
answers come from node's `semver`, Maven's `ComparableVersion`, Go's
`x/mod/semver`, the crate `semver`, RubyGems, Composer Semver, Elixir's
`Version` and `poetry-core`, found by the environment variables below or in
their usual places.

The file holds `versions`; `order`, one row a version with `<`, `=`, `>` or `?`
(refused) against each version; `requirements`, pairs of a text and one `1` or
`0` a version, or null where the text is refused; and `provenance`.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

NODE_SEMVER = os.environ.get("NODE_SEMVER", "/usr/lib/node_modules/npm/node_modules/semver")
MAVEN_JARS = os.environ.get("MAVEN_JARS", "/usr/share/maven/lib/maven-artifact-3.x.jar")  # joined by ':'
MAVEN_LIBS = os.environ.get("MAVEN_LIBS", "/usr/share/maven/lib/commons-lang3.jar")
COMPOSER_SEMVER = os.environ.get("COMPOSER_SEMVER", "/usr/share/php/Composer/Semver/autoload.php")

NUMBERS = ["0", "1", "2", "3", "10"]


def run(argv, payload, **more):
    done = subprocess.run(argv, input=json.dumps(payload), capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stdout)


def numbers(rng, *counts):
    return ".".join(rng.choice(NUMBERS) for _ in range(rng.choice(counts)))


# --- npm -----------------------------------------------------------------------------------------

NPM = """
const semver = require(process.env.NODE_SEMVER);
const {versions, requirements} = JSON.parse(require('fs').readFileSync(0));
const sign = (a, b) => semver.valid(a) && semver.valid(b) ? '<=>'[semver.compare(a, b) + 1] : '?';
console.log(JSON.stringify({
  order: versions.map(a => versions.map(b => sign(a, b)).join('')),
  requirements: requirements.map(r => {
    try { new semver.Range(r) } catch (e) { return [r, null] }
    return [r, versions.map(v => semver.satisfies(v, r) ? 1 : 0).join('')] }),
  tool: 'node ' + process.version + ', semver ' + require(process.env.NODE_SEMVER + '/package.json').version}))
"""
NPM_PRE = ["alpha", "alpha.1", "0", "beta.2", "rc-1", "1", "x", "01", "-", "0a", "alpha..1"]


def semver_version(rng, chance=0.35):
    text = numbers(rng, 3)
    if rng.random() < chance:
        text += "-" + rng.choice(NPM_PRE)
    if rng.random() < 0.1:
        text += "+" + rng.choice(["b", "001", "a.b"])
    return text


def npm_partial(rng):
    count = rng.choice([1, 2, 3, 3])
    wild = [*NUMBERS, "x", "*", "X"]
    text = ".".join(rng.choice(wild if rng.random() < 0.25 else NUMBERS) for _ in range(count))
    if count == 3 and rng.random() < 0.3:
        text += "-" + rng.choice(NPM_PRE)
    if rng.random() < 0.05:
        text = rng.choice(["v", "=", "v "]) + text
    return text


def npm_requirement(rng):
    arms = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        kind = rng.random()
        if kind < 0.12:
            arms.append(f"{npm_partial(rng)} - {npm_partial(rng)}")
        elif kind < 0.16:
            arms.append(rng.choice(["", "*", "x", " ", "latest", ">="]))
        else:
            operators = ["", "^", "~", ">=", "<=", "<", ">", "=", "~>", "^"]
            parts = [
                rng.choice(operators) + rng.choice(["", "", "", " "]) + npm_partial(rng)
                for _ in range(rng.choice([1, 1, 2, 2, 3]))
            ]
            arms.append(rng.choice([" ", " ", "  "]).join(parts))
    return rng.choice(["||", " || ", "|| "]).join(arms)


def npm(rng, count, requirements):
    versions = ["0.0.0", "0.0.0-0", "1.0.0-0", "2.0.0-0", *(semver_version(rng) for _ in range(count))]
    texts = [npm_requirement(rng) for _ in range(requirements)]
    env = {**os.environ, "NODE_SEMVER": NODE_SEMVER}
    return versions, run(["node", "-e", NPM], {"versions": versions, "requirements": texts}, env=env)


# --- Maven ---------------------------------------------------------------------------------------

MAVEN = """
import org.apache.maven.artifact.versioning.ComparableVersion;
import java.io.*; import java.util.*;
public class Order {
  public static void main(String[] a) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    List<ComparableVersion> all = new ArrayList<>();
    for (String line; (line = in.readLine()) != null;) all.add(new ComparableVersion(line));
    for (ComparableVersion x : all) {
      StringBuilder row = new StringBuilder();
      for (ComparableVersion y : all) { int c = x.compareTo(y); row.append(c < 0 ? '<' : c > 0 ? '>' : '='); }
      System.out.println(row);
    }
  }
}
"""
MAVEN_WORDS = (
    "alpha beta m rc cr snapshot ga final release sp jre android x redhat a b v r jre7 m1 rc1 a1 b2 alpha1 v20180503"
).split()
MAVEN_TAILS = (
    ".RELEASE .Final -jre -android -rc1 -rc-1 .RC1 -M1 .M1 -alpha-1 -alpha1 -beta9 -SNAPSHOT .GA .SP1"
    " .Final-redhat-00001 .redhat-2 .jre7 .v20180503 -r .CR1 -b05 .Beta2 .pr1 -preview a1"
).split()


def maven_version(rng):
    text = numbers(rng, 1, 2, 3, 3, 4)
    if rng.random() < 0.5:
        return text + rng.choice(["", "", *MAVEN_TAILS])
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
        text += rng.choice(["-", ".", "-", ""]) + rng.choice([*MAVEN_WORDS, "1", "0", "00"])
    return text


def maven(rng, count, _):
    versions = sorted({maven_version(rng) for _ in range(count)})
    orders = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Order.java").write_text(MAVEN, encoding="utf-8")
        jars = MAVEN_JARS.split(":")
        subprocess.run(["javac", "-cp", jars[0], "Order.java"], cwd=folder, check=True)
        for jar in jars:
            argv = ["java", "-cp", f".:{jar}:{MAVEN_LIBS}", "Order"]
            done = subprocess.run(
                argv, input="\n".join(versions), cwd=folder, capture_output=True, text=True, check=True
            )
            orders[Path(jar).resolve().stem] = done.stdout.split("\n")[:-1]
    # A pair on which the releases differ is marked as in dispute.
    rows = ["".join(c[0] if len(set(c)) == 1 else "!" for c in zip(*row)) for row in zip(*orders.values())]
    return versions, {"order": rows, "requirements": [], "tool": "ComparableVersion of " + ", ".join(orders)}


# --- Go ------------------------------------------------------------------------------------------

GO = """
package main
import ("encoding/json"; "fmt"; "os"; "strings"; "golang.org/x/mod/semver")
func main() {
  var in struct{ Versions []string `json:"versions"` }
  json.NewDecoder(os.Stdin).Decode(&in)
  rows := []string{}
  for _, a := range in.Versions {
    var row strings.Builder
    for _, b := range in.Versions {
      if !semver.IsValid(a) || !semver.IsValid(b) { row.WriteByte('?'); continue }
      row.WriteByte("<=>"[semver.Compare(a, b)+1])
    }
    rows = append(rows, row.String())
  }
  out, _ := json.Marshal(map[string]any{"order": rows, "requirements": []any{}})
  fmt.Println(string(out))
}
"""
GO_VERSION = "v0.24.0"


def go_version(rng):
    stamp = rng.choice(["20190101000000", "20210107192922", "20220521103104"]) + "-" + rng.choice(["8f96da9f5d5e", "496545a6307b"])
    kind = rng.random()
    if kind < 0.2:
        return f"v{numbers(rng, 3)}-0.{stamp}"
    if kind < 0.3:
        return f"v{numbers(rng, 3)}-{rng.choice(['beta.1', 'rc.2', 'pre'])}.0.{stamp}"
    if kind < 0.4:
        return f"v0.0.0-{stamp}"
    if kind < 0.55:
        return f"v{numbers(rng, 3)}+incompatible"
    return "v" + semver_version(rng)


def go(rng, count, _):
    versions = [go_version(rng) for _ in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.go").write_text(GO, encoding="utf-8")
        Path(folder, "go.mod").write_text(f"module record\n\ngo 1.21\n\nrequire golang.org/x/mod {GO_VERSION}\n")
        env = {**os.environ, "GOFLAGS": "-mod=mod"}
        answer = run(["go", "run", "."], {"versions": versions}, cwd=folder, env=env)
    return versions, {**answer, "tool": f"golang.org/x/mod/semver {GO_VERSION}"}


# --- RubyGems ------------------------------------------------------------------------------------

RUBY = """
require 'json'; require 'rubygems'
input = JSON.parse(STDIN.read)
all = input['versions'].map { |v| Gem::Version.correct?(v) ? Gem::Version.new(v) : nil }
order = all.map { |a| all.map { |b| a && b ? '<=>'[(a <=> b) + 1] : '?' }.join }
requirements = input['requirements'].map do |text|
  begin
    r = Gem::Requirement.new(text.split(','))
    [text, all.map { |v| v && r.satisfied_by?(v) ? '1' : '0' }.join]
  rescue ArgumentError
    [text, nil]
  end
end
puts JSON.generate({order: order, requirements: requirements, tool: "RubyGems #{Gem::VERSION}"})
"""


def gem_version(rng):
    text = numbers(rng, 1, 2, 3, 3, 4)
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        text += rng.choice([".", ".", "-"]) + rng.choice(["a", "rc1", "beta2", "pre", "0", "1", "rc.1", "b", "A", "0.0.1"])
    return text


def gem_requirement(rng):
    operators = ["", "=", "~>", ">=", "<", ">", "<=", "!=", "~>", "~>"]
    return rng.choice([", ", ","]).join(
        rng.choice(operators) + rng.choice([" ", " ", ""]) + gem_version(rng) for _ in range(rng.choice([1, 1, 2, 3]))
    )


def rubygems(rng, count, requirements):
    versions = sorted({gem_version(rng) for _ in range(count)})
    texts = [gem_requirement(rng) for _ in range(requirements)]
    return versions, run(["ruby", "-e", RUBY], {"versions": versions, "requirements": texts})


# --- Composer ------------------------------------------------------------------------------------

PHP = """
require getenv('COMPOSER_SEMVER');
use Composer\\Semver\\VersionParser; use Composer\\Semver\\Comparator; use Composer\\Semver\\Constraint\\Constraint;
$in = json_decode(stream_get_contents(STDIN), true); $p = new VersionParser();
$n = array_map(function ($v) use ($p) { try { return $p->normalize($v); } catch (\\Exception $e) { return null; } }, $in['versions']);
$order = [];
foreach ($n as $a) { $row = '';
  foreach ($n as $b) {
    if ($a === null || $b === null) { $row .= '?'; continue; }
    $branch = strpos($a, 'dev-') === 0 || strpos($b, 'dev-') === 0;
    if ($branch) { $row .= $a === $b ? '=' : '!'; continue; }  // never in an order
    $row .= Comparator::lessThan($a, $b) ? '<' : (Comparator::greaterThan($a, $b) ? '>' : (Comparator::equalTo($a, $b) ? '=' : '!'));
  } $order[] = $row; }
$requirements = [];
foreach ($in['requirements'] as $r) {
  try { $c = $p->parseConstraints($r); } catch (\\Exception $e) { $requirements[] = [$r, null]; continue; }
  $bits = ''; foreach ($n as $v) { $bits .= $v !== null && $c->matches(new Constraint('==', $v)) ? '1' : '0'; }
  $requirements[] = [$r, $bits]; }
echo json_encode(['order' => $order, 'requirements' => $requirements, 'tool' => 'Composer Semver on PHP ' . PHP_VERSION]);
"""
COMPOSER_TAILS = ["", "", "", "-dev", "-alpha", "-alpha1", "-beta2", "-beta.3", "-RC1", "-rc2", "-p1", "-pl2", "-patch", "a1", "b2", "+build", "-stable", "@beta"]


def composer_version(rng):
    kind = rng.random()
    if kind < 0.05:
        return rng.choice(["dev-main", "dev-feature/x", "master"])
    if kind < 0.12:
        return rng.choice(["1.x-dev", "2.0.x-dev", "1.0.x-dev", "3.x-dev", "v1.2.x-dev"])
    if kind < 0.17:
        return rng.choice(["20100102", "2010-01-02", "2010.01.02", "2010-01-02.5", "201903.0", "20100102-p3"])
    return rng.choice(["", "", "", "v"]) + numbers(rng, 1, 2, 3, 3, 4) + rng.choice(COMPOSER_TAILS)


def composer_requirement(rng):
    arms = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        kind = rng.random()
        if kind < 0.1:
            # In this order, since Composer merges alternatives that look contiguous.
            tails = (rng.choice(["", ".0", ".1", ".2.3", ".0.1.2"]) + rng.choice(COMPOSER_TAILS) for _ in range(2))
            arms.append(f"{rng.choice('01')}{next(tails)} - {rng.choice('23')}{next(tails)}")
        elif kind < 0.2:
            arms.append(rng.choice(["*", "1.*", "1.2.*", "2.x", "0.*", "1.0.x", "dev-main", "0.0.*"]))
        else:
            parts = []
            for _ in range(rng.choice([1, 1, 2])):
                operator = rng.choice(["", "^", "~", ">=", "<", ">", "<=", "!=", "==", "=", "^", "~"])
                space = rng.choice(["", "", " "]) if operator not in ("^", "~") else ""
                parts.append(operator + space + composer_version(rng))
            arms.append(rng.choice([" ", ",", ", "]).join(parts))
    return rng.choice(["||", " || ", "|"]).join(arms)


def composer(rng, count, requirements):
    versions = sorted({composer_version(rng) for _ in range(count)})
    texts = [composer_requirement(rng) for _ in range(requirements)]
    env = {**os.environ, "COMPOSER_SEMVER": COMPOSER_SEMVER}
    return versions, run(["php", "-r", PHP], {"versions": versions, "requirements": texts}, env=env)


# --- Elixir --------------------------------------------------------------------------------------

ELIXIR = """
lines = fn name -> File.read!(Path.join(hd(System.argv()), name)) |> String.split("\\n") end
versions = lines.("versions"); requirements = lines.("requirements")
parsed = Enum.map(versions, fn v -> case Version.parse(v) do {:ok, p} -> p; :error -> nil end end)
for a <- parsed do
  IO.puts(Enum.map_join(parsed, "", fn b ->
    if a && b, do: %{lt: "<", eq: "=", gt: ">"}[Version.compare(a, b)], else: "?" end))
end
for r <- requirements, pre <- [true, false] do
  case Version.parse_requirement(r) do
    :error -> IO.puts("null")
    {:ok, req} -> IO.puts(Enum.map_join(parsed, "", fn v ->
      if v && Version.match?(v, req, allow_pre: pre), do: "1", else: "0" end))
  end
end
IO.puts("Elixir " <> System.version())
"""


def hex_requirement(rng):
    def one():
        operator = rng.choice(["", "~>", ">=", "<", ">", "<=", "==", "!=", "~>", "~>"])
        text = numbers(rng, 2) if operator == "~>" and rng.random() < 0.4 else numbers(rng, 3)
        if rng.random() < 0.25:
            text += "-" + rng.choice(["dev", "rc.1", "alpha.2", "0"])
        return operator + rng.choice([" ", " ", ""]) + text

    return " or ".join(
        " and ".join(one() for _ in range(rng.choice([1, 1, 2]))) for _ in range(rng.choice([1, 1, 1, 2]))
    )


def erlang(rng, count, requirements):
    versions = [semver_version(rng) for _ in range(count)]
    texts = [hex_requirement(rng) for _ in range(requirements)]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "versions").write_text("\n".join(versions), encoding="utf-8")
        Path(folder, "requirements").write_text("\n".join(texts), encoding="utf-8")
        Path(folder, "record.exs").write_text(ELIXIR, encoding="utf-8")
        done = subprocess.run(["elixir", "record.exs", folder], cwd=folder, capture_output=True, text=True, check=True)
    rows = done.stdout.split("\n")[:-1]
    answers = [None if row == "null" else row for row in rows[len(versions) : -1]]
    return versions, {
        "order": rows[: len(versions)],
        "requirements": list(zip(texts, answers[1::2])),
        "with_prereleases": list(zip(texts, answers[::2])),
        "tool": rows[-1],
    }


# --- Rust ----------------------------------------------------------------------------------------

RUST = """
use std::cmp::Ordering::*; use std::io::{self, BufRead};
fn main() {
    let (mut vs, mut rs, mut second) = (vec![], vec![], false);
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        if line == "--" { second = true } else if second { rs.push(line) } else { vs.push(line) }
    }
    let all: Vec<_> = vs.iter().map(|v| semver::Version::parse(v).ok()).collect();
    for a in &all {
        println!("{}", all.iter().map(|b| match (a, b) {
            (Some(a), Some(b)) => match a.cmp_precedence(b) { Less => '<', Greater => '>', Equal => '=' },
            _ => '?' }).collect::<String>());
    }
    for r in &rs {
        match semver::VersionReq::parse(r) {
            Err(_) => println!("null"),
            Ok(q) => println!("{}", all.iter().map(|v| match v {
                Some(v) if q.matches(v) => '1', _ => '0' }).collect::<String>()),
        }
    }
}
"""
RUST_CRATE = "1.0.23"


def cargo_requirement(rng):
    def one():
        operator = rng.choice(["", "^", "~", ">=", "<", ">", "<=", "=", "^"])
        if rng.random() < 0.1:
            return rng.choice(["*", "1.*", "1.2.*", "0.*", "2.x", "=1.*", "^1.*"])
        count = rng.choice([1, 2, 3, 3])
        text = numbers(rng, count)
        if count == 3 and rng.random() < 0.3:
            text += "-" + rng.choice(NPM_PRE)
        return operator + rng.choice(["", "", " "]) + text

    return rng.choice([", ", ",", " , "]).join(one() for _ in range(rng.choice([1, 1, 2, 3])))


def rust(rng, count, requirements):
    versions = [semver_version(rng) for _ in range(count)]
    texts = [cargo_requirement(rng) for _ in range(requirements)]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "src").mkdir()
        Path(folder, "src/main.rs").write_text(RUST, encoding="utf-8")
        manifest = f'[package]\nname = "record"\nversion = "0.1.0"\n[dependencies]\nsemver = "={RUST_CRATE}"\n'
        Path(folder, "Cargo.toml").write_text(manifest, encoding="utf-8")
        done = subprocess.run(
            ["cargo", "run", "-q"], input="\n".join([*versions, "--", *texts]), cwd=folder,
            capture_output=True, text=True, check=True,
        )
    rows = done.stdout.split("\n")[:-1]
    answers = [None if row == "null" else row for row in rows[len(versions) :]]
    return versions, {
        "order": rows[: len(versions)], "requirements": list(zip(texts, answers)), "tool": f"crate semver {RUST_CRATE}"
    }


# --- Poetry --------------------------------------------------------------------------------------


def poetry_version(rng):
    text = numbers(rng, 1, 2, 3, 3, 3)
    return text + rng.choice(["", "", "", "", "", "a1", "b2", "rc1", "-alpha.2", ".post1", ".dev1"])


def poetry_requirement(rng):
    def one():
        if rng.random() < 0.1:
            return rng.choice(["*", "1.*", "2.*", "1.2.*", "!=1.*", "==1.2.*"])
        operator = rng.choice(["", "^", "~", ">=", "<", "<=", ">", "==", "^", "~", "~=", "=", "!="])
        text = numbers(rng, 2, 3) if operator == "~=" else poetry_version(rng)
        return operator + ("" if operator in "^~" else rng.choice(["", "", " "])) + text

    def arm():
        return rng.choice([",", ", ", " "]).join(one() for _ in range(rng.choice([1, 1, 2])))

    return rng.choice([" || ", "||"]).join(arm() for _ in range(rng.choice([1, 1, 1, 2])))


def poetry(rng, count, requirements):
    import poetry.core
    from poetry.core.constraints.version import Version, parse_constraint

    versions = [poetry_version(rng) for _ in range(count)]
    parsed = [Version.parse(version) for version in versions]
    answers = []
    for text in (poetry_requirement(rng) for _ in range(requirements)):
        # A joined `!=` leaves out post-releases in Poetry, a single one does not; unions of `>` and `==` likewise.
        if "!=" in text and "*" not in text or "||" in text and ">" in text:
            continue
        try:
            constraint = parse_constraint(text)
        except ValueError:
            answers.append((text, None))
        else:
            answers.append((text, "".join("01"[constraint.allows(version)] for version in parsed)))
    order = ["".join("<=>"[(a > b) - (a < b) + 1] for b in parsed) for a in parsed]
    return versions, {
        "order": order, "requirements": [], "with_prereleases": answers, "tool": f"poetry-core {poetry.core.__version__}"
    }


def lines(value):
    """JSON with one element of a list a line."""
    if isinstance(value, list):
        return "[\n" + ",\n".join(json.dumps(item) for item in value) + "\n]"
    return json.dumps(value)


def main():
    name = sys.argv[1]
    given = [int(value) for value in sys.argv[2:]]
    seed, count, requirements = [*given, *[1, 60, 200][len(given) :]]
    oracle = {
        "npm": npm, "maven": maven, "go": go, "rust": rust, "rubygems": rubygems, "composer": composer,
        "erlang": erlang, "poetry": poetry,
    }[name]
    versions, answer = oracle(random.Random(seed), count, requirements)
    tool = answer.pop("tool")
    provenance = {"oracle": tool, "seed": seed, "recorded": datetime.now(UTC).date().isoformat(), "by": "record/record.py"}
    parts = {"provenance": provenance, "versions": versions, **answer}
    print("{" + ",\n".join(f"{json.dumps(key)}: {lines(value)}" for key, value in parts.items()) + "}")


main()
