"""Moving from Azure Personalizer: the same request bodies, with the id of the user beside them.

python3 move.py http://127.0.0.1:8080 [KEY]

Personalizer has no users: put the id that you have into "userId". The paths are shorter
(/v1/rank instead of /personalizer/v1.0/rank), a rank is answered with 200 instead of 201, and the
header Ocp-Apim-Subscription-Key is understood.
"""

import json
import sys
import urllib.request

# As Personalizer's documentation has it, but for "userId".
RANK = {
    "userId": "ann",
    "contextFeatures": [{"timeOfDay": "morning"}, {"device": {"type": "mobile", "isApp": True}}],
    "actions": [
        {"id": "pasta", "features": [{"taste": "salty", "spiceLevel": "medium"}, {"nutritionLevel": 5}]},
        {"id": "ice cream", "features": [{"taste": "sweet", "spiceLevel": "none"}, {"nutritionLevel": 2}]},
        {"id": "salad", "features": [{"taste": "salty", "spiceLevel": "low"}, {"nutritionLevel": 8}]},
    ],
    "excludedActions": ["ice cream"],
    "eventId": "75269AD0-BFEE-4598-8196-C57383D38E10",
    "deferActivation": False,
}


def post(server, path, body, key=None):
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Ocp-Apim-Subscription-Key"] = key
    request = urllib.request.Request(server + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as reply:
        return json.loads(reply.read())


def main():
    server, key = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    ranked = post(server, "/v1/rank", RANK, key)
    print("show", ranked["rewardActionId"], [(entry["id"], entry["probability"]) for entry in ranked["ranking"]])
    print(post(server, f"/v1/events/{ranked['eventId']}/reward", {"value": 1.0}, key))


if __name__ == "__main__":
    main()
