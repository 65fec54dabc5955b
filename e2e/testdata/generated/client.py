"""Calls Vigil with the Python client generated from the contract: python3 client.py URL CLIENT_ID CLIENT_SECRET."""

import base64
import datetime
import sys

from vigil import AuthenticatedClient, Client
from vigil.api.alerts import list_alerts
from vigil.api.billing import list_billing_entries, read_billing_entry
from vigil.api.clients import sign_in_client
from vigil.api.fhir import read_fhir_observation
from vigil.api.ingestion import post_blood_pressure
from vigil.api.patients import list_patients
from vigil.models import BloodPressureBody, ClientTokenRequest, ClientTokenRequestGrantType, Error, Patient

url, client_id, client_secret = sys.argv[1:]
basic = "Basic " + base64.b64encode(f"{client_id}:{client_secret}".encode()).decode()
token = sign_in_client.sync(
    client=Client(base_url=url),
    authorization=basic,
    body=ClientTokenRequest(grant_type=ClientTokenRequestGrantType.CLIENT_CREDENTIALS),
)
client = AuthenticatedClient(base_url=url, token=token.access_token)

patients: list[Patient] = []
page = list_patients.sync(client=client, page_size=2)
while True:
    patients += page.results
    if page.next_ is None:
        break
    page = list_patients.sync(client=client, page_size=2, page=len(patients) // 2 + 1)
ada = next(patient for patient in patients if patient.first_name == "Ada")
print("patients:", len(patients), page.count, ada.first_name)

now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
reading = post_blood_pressure.sync(client=client, body=BloodPressureBody(patient_id=ada.id, systolic=191.0, diastolic=84.0, measured_at=now))
print("reading:", reading.systolic, reading.origin.value, reading.measured_at == now)
alerts = list_alerts.sync(client=client, patient_id=ada.id)
print("alerts:", [alert.level.value for alert in alerts.results if alert.observation_id == reading.id])
print("fhir:", read_fhir_observation.sync(reading.id, client=client).resource_type)
entry = list_billing_entries.sync(client=client).results[0]
print("billing:", entry.amount, read_billing_entry.sync(entry.id, client=client).history[0].action)
refused = list_patients.sync(client=client, page=99)
print("refused:", isinstance(refused, Error) and refused.code)
