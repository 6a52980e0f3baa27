"""Moving from Azure Personalizer: the same paths, header, bodies and status codes at another address.

python3 move.py http://127.0.0.1:8080 [KEY]

Personalizer has no users. To tell them apart send their id as "userId", as here, or name the place
where the context has it in the server's setting features.user_from.
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
        return reply.status, json.loads(reply.read() or "null")


def main():
    server, key = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    status, ranked = post(server, "/personalizer/v1.0/rank", RANK, key)
    print(status, "show", ranked["rewardActionId"], [(entry["id"], entry["probability"]) for entry in ranked["ranking"]])
    status, _ = post(server, f"/personalizer/v1.0/events/{ranked['eventId']}/reward", {"value": 1.0}, key)
    print(status, "the reward is learned")


if __name__ == "__main__":
    main()
