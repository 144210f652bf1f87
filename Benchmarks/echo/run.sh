#!/usr/bin/env bash
# Builds every contestant and runs all races of echo servers, one after the other:
#
#     Benchmarks/echo/run.sh [FOLDER]
#
# FOLDER gets the tables and all samples; without it they are only printed. Takes half an hour; use a quiet machine.
# ROUNDS=7 SECONDS_EACH=1 change the number and length of the measurements.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"

swift build -c release --product echo-server
for product in chunk-echo nio-echo; do
    swift build --package-path Benchmarks -c release --product "$product"
done
swift build --package-path Benchmarks -c release --static-swift-stdlib --scratch-path Benchmarks/.build-static \
    --product empty-loop

Benchmarks/echo/race.py --rounds "${ROUNDS:-9}" --seconds "${SECONDS_EACH:-1}" --json "$folder/race.json" |
    tee "$folder/race.txt"
Benchmarks/echo/others.py --rounds "${ROUNDS:-9}" --json "$folder/others.json" | tee "$folder/others.txt"
