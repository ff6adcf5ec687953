"""`python -m slow_twins.fleet < questions.jsonl > answers.jsonl`"""

import json
import sys

from slow_twins import fleet

for line in sys.stdin:
    sys.stdout.write(json.dumps(fleet.answer(json.loads(line))) + "\n")
