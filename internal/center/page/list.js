// The list of all practices. A row opens the patient in that practice's console.
const refreshEvery = 6000 // a practice counts a person's requests

const element = (name, text, attributes = {}) => Object.assign(document.createElement(name), { textContent: text ?? "" }, attributes)

async function read(path) {
  const answer = await fetch(path)
  if (answer.status === 401) {
    location.assign("/login")
    throw new Error("signing in")
  }
  if (!answer.ok) throw new Error((await answer.json()).detail)
  return answer.json()
}

function showRow(row) {
  const line = document.createElement("tr")
  line.className = row.risk_level
  const patient = document.createElement("td")
  patient.append(element("a", row.patient_name, { href: `${row.url}/#/patients/${row.patient_id}`, rel: "noopener" }))
  const reading = row.last_reading_at ? new Date(row.last_reading_at).toLocaleString() : "none"
  line.append(element("td", `${row.risk_score} ${row.risk_level}`), patient, element("td", row.practice), element("td", row.unacknowledged_alerts), element("td", reading))
  return line
}

function showUnavailable(practices) {
  const place = document.querySelector("#unavailable")
  place.hidden = practices.length === 0
  place.textContent = `Not shown: ${practices.map((one) => `${one.practice} (${one.reason})`).join(", ")}`
}

async function refresh() {
  const status = document.querySelector("#status")
  try {
    const list = await read("/api/v1/center/triage/")
    document.querySelector("tbody").replaceChildren(...list.results.map(showRow))
    document.querySelector("table").hidden = false
    showUnavailable(list.unavailable)
    status.textContent = `${list.results.length} of ${list.count} patients, ${new Date().toLocaleTimeString()}`
  } catch (problem) {
    status.textContent = `The list is not current: ${problem.message}`
  }
}

async function refreshOnCall() {
  const { results } = await read("/api/v1/center/on-call/")
  document.querySelector("#on-call").replaceChildren(...results.map((one) => element("li", `${one.practice}: ${one.name ?? "nobody"}`)))
}

document.querySelector("#sign-out").addEventListener("click", async () => {
  await fetch("/logout", { method: "POST" })
  document.body.replaceChildren(element("p", "You are signed out."), element("a", "Sign in", { href: "/login" }))
})

for (;;) {
  await refresh()
  await refreshOnCall().catch(() => {})
  await new Promise((done) => setTimeout(done, refreshEvery))
}
