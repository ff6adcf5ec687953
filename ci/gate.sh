#!/bin/sh
# Runs Bayplan's checks on manifests, as a gate of a pipeline, and keeps what code hosts show of them.
#
#   ci/gate.sh --manifests PATH [--state PATH] [--lose WHAT]… [--timeline FILE]… [--audit PATH [--inventory PATH]] [--strict] [--reports DIR]
#
# --manifests  validated, and placed on the state; may be repeated
# --state      what runs: a snapshot or a dump of the cluster; without it nothing is placed
# --lose       placed again as if this were gone, such as node/N or topology.kubernetes.io/zone=a; may be repeated
# --timeline   simulated on the state with the manifests, with its expectations; may be repeated
# --audit      a dump of nodes that is audited; --inventory says on which machines they run
# --strict     what could not be judged, and warnings of validate, are a no
#
# In DIR (bayplan-reports) are summary.md, *.sarif, *.junit.xml and plan.html. Exit code: the highest of all commands;
# 0 yes, 1 no, 2 input that cannot be read, 3 no access.
set -u

usage() {
  sed -n '4s/^# *//p' "$0" >&2
  exit 2
}

manifests="" state="" loses="" timelines="" audit="" inventory="" strict="" reports="bayplan-reports"
while [ $# -gt 0 ]; do
  [ "$1" = --strict ] || [ $# -gt 1 ] || usage
  case "$1" in
    --manifests) manifests="$manifests
$2"; shift ;;
    --state) state="$2"; shift ;;
    --lose) loses="$loses
$2"; shift ;;
    --timeline) timelines="$timelines
$2"; shift ;;
    --audit) audit="$2"; shift ;;
    --inventory) inventory="$2"; shift ;;
    --reports) reports="$2"; shift ;;
    --strict) strict=--strict ;;
    *) usage ;;
  esac
  shift
done
[ -n "$manifests$audit" ] || usage
mkdir -p "$reports" || exit 2
summary="$reports/summary.md"
worst=0
: > "$summary"

# Run a command; keep its exit code if it is the highest.
judged() {
  "$@"
  code=$?
  [ "$code" -le "$worst" ] || worst=$code
  return "$code"
}

# A table of text, below a heading.
shown() {
  heading=$1
  shift
  printf '\n### %s\n\n```\n' "$heading" >> "$summary"
  judged "$@" > "$reports/.table" 2>&1
  cat "$reports/.table" >> "$summary"
  rm -f "$reports/.table"
  printf '```\n' >> "$summary"
}

# From here on the arguments are those that name the manifests. A path may have spaces, but no line break.
set --
IFS='
'
for path in $manifests; do set -- "$@" -f "$path"; done

if [ $# -gt 0 ]; then
  judged bayplan validate "$@" -R ${strict:+"$strict"} -o markdown >> "$summary"
  bayplan validate "$@" -R --exit-zero --quiet -o sarif --output-file "$reports/validate.sarif"
  bayplan validate "$@" -R --exit-zero --quiet -o junit --output-file "$reports/validate.junit.xml"
fi
if [ $# -gt 0 ] && [ -n "$state" ]; then
  shown "Placement" bayplan place --state "$state" "$@" -R ${strict:+"$strict"}
  bayplan place --state "$state" "$@" -R --exit-zero --quiet --explain -o html --output-file "$reports/plan.html"
  for lost in $loses; do
    shown "Without $lost" bayplan place --state "$state" "$@" -R ${strict:+"$strict"} --lose "$lost"
  done
  number=0
  for timeline in $timelines; do
    number=$((number + 1))
    shown "Timeline $timeline" bayplan simulate --state "$state" "$@" -R "$timeline"
    bayplan simulate --state "$state" "$@" -R "$timeline" --exit-zero --quiet -o junit --output-file "$reports/timeline-$number.junit.xml"
  done
fi
if [ -n "$audit" ]; then
  set -- -f "$audit"
  [ -z "$inventory" ] || set -- "$@" --inventory "$inventory"
  judged bayplan audit "$@" -o markdown >> "$summary"
  bayplan audit "$@" --exit-zero --quiet -o sarif --output-file "$reports/audit.sarif"
  bayplan audit "$@" --exit-zero --quiet -o junit --output-file "$reports/audit.junit.xml"
fi
cat "$summary"
exit "$worst"
