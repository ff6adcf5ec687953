"""`python -m reference.fleet < questions.jsonl > answers.jsonl`"""

import json
import sys

from reference import fleet

for line in sys.stdin:
    sys.stdout.write(json.dumps(fleet.answer(json.loads(line))) + "\n")
