// The words of the patient portal in each language, from one catalogue.
import { language } from "../language.js";

/** @typedef {keyof typeof catalogue} Word */

/** By word: English, Spanish. `{…}` is filled in. */
export const catalogue = {
  portal: ["My readings", "Mis mediciones"],
  skip: ["Skip to content", "Ir al contenido"],
  sections: ["Sections", "Secciones"],
  person: ["Person", "Persona"],
  me: ["Me", "Yo"],
  account: ["Account", "Cuenta"],
  readings: ["Readings", "Mediciones"],
  thread: ["Messages", "Mensajes"],
  sharing: ["Sharing", "Compartir"],
  signOut: ["Sign out", "Cerrar sesión"],
  emergency: ["In an emergency, call 911. Your practice looks at readings during office hours.",
    "En una emergencia, llame al 911. Su consultorio revisa las mediciones en horario de oficina."],
  loading: ["Loading", "Cargando"],
  failed: ["This could not be loaded. Check your connection.", "No se pudo cargar. Revise su conexión."],
  again: ["Try again", "Intentar de nuevo"],
  noRecord: ["No record yet", "Aún no hay expediente"],
  noRecordHelp: ["Your practice has not linked this account to a record. Please call them.",
    "Su consultorio no ha vinculado esta cuenta a un expediente. Por favor, llámelos."],
  today: ["Today", "Hoy"],
  measure: ["Take a reading today.", "Hágase una medición hoy."],
  measured: ["Done for today. Thank you.", "Listo por hoy. Gracias."],
  readOnly: ["You can see these readings. Entering them is not allowed for you.", "Puede ver estas mediciones, pero no registrarlas."],
  last: ["Last reading", "Última medición"],
  enter: ["Enter a reading", "Registrar una medición"],
  kind: ["What did you measure?", "¿Qué midió?"],
  blood_pressure: ["Blood pressure", "Presión arterial"],
  weight: ["Weight", "Peso"],
  pulse_oximetry: ["Oxygen", "Oxígeno"],
  blood_glucose: ["Blood sugar", "Azúcar en la sangre"],
  body_temperature: ["Temperature", "Temperatura"],
  systolic: ["Upper number (systolic)", "Número de arriba (sistólica)"],
  diastolic: ["Lower number (diastolic)", "Número de abajo (diastólica)"],
  pulse: ["Pulse, if shown", "Pulso, si aparece"],
  weight_kg: ["Weight", "Peso"],
  spo2: ["Oxygen (SpO₂)", "Oxígeno (SpO₂)"],
  glucose_mg_dl: ["Blood sugar", "Azúcar en la sangre"],
  temperature_c: ["Temperature", "Temperatura"],
  save: ["Save", "Guardar"],
  saving: ["One moment", "Un momento"],
  cancel: ["Cancel", "Cancelar"],
  missing: ["Please enter a number.", "Por favor, escriba un número."],
  isRight: ["Is that right?", "¿Es correcto?"],
  isRightHelp: ["{value} is very unusual. Look at the device again. If it is right, press Save again, and the practice will check it.",
    "{value} es muy poco común. Mire el aparato otra vez. Si es correcto, pulse Guardar de nuevo y el consultorio lo revisará."],
  swapped: ["The upper number must be larger than the lower number.", "El número de arriba debe ser mayor que el de abajo."],
  held: ["The practice will check this value. It is not in your list yet. If you feel unwell, call 911.",
    "El consultorio revisará este valor. Aún no está en su lista. Si se siente mal, llame al 911."],
  notSaved: ["This was not saved. Try again, or call the practice.", "No se guardó. Inténtelo de nuevo o llame al consultorio."],
  savedPlain: ["{value} is saved.", "{value} quedó guardado."],
  savedGood: ["{value} is saved. It is within your target.", "{value} quedó guardado. Está dentro de su meta."],
  savedAbove: ["{value} is saved. It is a little above your target.", "{value} quedó guardado. Está un poco por encima de su meta."],
  savedBelow: ["{value} is saved. It is a little below your target.", "{value} quedó guardado. Está un poco por debajo de su meta."],
  savedHigh: ["{value} is saved. It is high.", "{value} quedó guardado. Está alto."],
  savedLow: ["{value} is saved. It is low.", "{value} quedó guardado. Está bajo."],
  measureAgain: ["Measure again", "Medir otra vez"],
  restHint: ["Sit and rest for five minutes: back supported, feet flat, arm at heart level. Do not talk. Then measure again.",
    "Siéntese y descanse cinco minutos: espalda apoyada, pies en el piso, brazo a la altura del corazón. "
      + "No hable. Después mida otra vez."],
  whatNow: ["If the second reading is like the first one, call the practice today.",
    "Si la segunda medición es parecida a la primera, llame hoy al consultorio."],
  call911: ["Call 911 now for chest pain, trouble breathing, weakness on one side, trouble speaking or a severe headache.",
    "Llame al 911 ahora si tiene dolor de pecho, dificultad para respirar, debilidad en un lado, dificultad para hablar o un dolor de "
      + "cabeza muy fuerte."],
  chart: ["Blood pressure, last 30 days", "Presión arterial, últimos 30 días"],
  target: ["target {range} (green)", "meta {range} (verde)"],
  chartNone: ["Two blood pressure readings make a chart.", "Con dos mediciones de presión se ve una gráfica."],
  chartText: ["{n} readings; the newest is {value}. All are in the list below.",
    "{n} mediciones; la más reciente es {value}. Todas están en la lista de abajo."],
  upper: ["Upper", "Arriba"],
  lower: ["Lower", "Abajo"],
  from: ["{low} to {high}", "{low} a {high}"],
  below: ["below {high}", "menos de {high}"],
  above: ["above {low}", "más de {low}"],
  list: ["All readings, last 30 days", "Todas las mediciones, últimos 30 días"],
  showAll: ["Show all {n}", "Mostrar las {n}"],
  listNone: ["No readings in the last 30 days.", "No hay mediciones en los últimos 30 días."],
  notConfirmed: ["being checked by the practice", "en revisión por el consultorio"],
  removed: ["removed by the practice", "retirada por el consultorio"],
  help: ["Help with the device", "Ayuda con el aparato"],
  help1: ["Keep the device charged, or put in new batteries, and keep it near its hub or phone.",
    "Mantenga el aparato cargado o con pilas nuevas, y cerca de su base o teléfono."],
  help2: ["No caffeine, exercise or smoking in the 30 minutes before. Empty your bladder. "
    + "Put the cuff on bare skin, two fingers above the elbow.",
    "Sin cafeína, ejercicio ni cigarro en los 30 minutos anteriores. Vaya al baño. "
      + "Ponga el brazalete sobre la piel, dos dedos arriba del codo."],
  help3: ["A reading that does not arrive: measure again near the hub. "
    + "If it is still missing after an hour, enter it here or call the practice.",
    "Si una medición no llega: mida otra vez cerca de la base. "
      + "Si después de una hora aún falta, regístrela aquí o llame al consultorio."],
  messages: ["Messages with your care team", "Mensajes con su equipo médico"],
  messagesHelp: ["The practice reads messages during office hours. In an emergency, call 911.",
    "El consultorio lee los mensajes en horario de oficina. En una emergencia, llame al 911."],
  yourMessage: ["Your message", "Su mensaje"],
  writeFirst: ["Please write a message first.", "Por favor, escriba primero un mensaje."],
  messageSent: ["Sent.", "Enviado."],
  wrote: ["Your care team wrote to you: {day}", "Su equipo médico le escribió: {day}"],
  reply: ["Read and answer", "Leer y responder"],
  send: ["Send", "Enviar"],
  team: ["Your care team", "Su equipo médico"],
  practice: ["The practice", "El consultorio"],
  questions: ["Questions for you", "Preguntas para usted"],
  dueNow: ["Please answer today.", "Por favor, responda hoy."],
  dueOn: ["Next time: {day}", "Próxima vez: {day}"],
  answer: ["Answer", "Responder"],
  answerOne: ["Answer: {name}", "Responder: {name}"],
  answerAll: ["Please answer each question.", "Por favor, responda cada pregunta."],
  looked: ["Who looked at my data", "Quién vio mis datos"],
  lookedNone: ["No one in the last 30 days.", "Nadie en los últimos 30 días."],
  staff: ["The practice ({role})", "El consultorio ({role})"],
  admin: ["administrator", "administración"],
  clinical_manager: ["clinical manager", "gerencia clínica"],
  provider: ["provider", "médico"],
  nurse: ["nurse", "enfermería"],
  ma: ["medical assistant", "asistente médico"],
  data_monitor: ["billing", "facturación"],
  system: ["The practice's systems", "Los sistemas del consultorio"],
  you: ["You", "Usted"],
  caregivers: ["People who help me", "Personas que me ayudan"],
  caregiversHelp: ["They sign in with their own account and see your readings. You can end this at any time.",
    "Entran con su propia cuenta y ven sus mediciones. Usted puede terminarlo en cualquier momento."],
  caregiversNone: ["No one yet.", "Nadie todavía."],
  canRead: ["sees readings", "ve las mediciones"],
  canEnter: ["sees and enters readings", "ve y registra mediciones"],
  untilDay: ["until {day}", "hasta {day}"],
  end: ["End access of {name}", "Terminar el acceso de {name}"],
  add: ["Add a person", "Agregar a una persona"],
  email: ["Email address", "Correo electrónico"],
  relationship: ["This person is my", "Esta persona es mi"],
  scope: ["May this person enter readings?", "¿Puede registrar mediciones?"],
  yes: ["Yes", "Sí"],
  no: ["No, only see them", "No, solo verlas"],
  until: ["Last day (optional)", "Último día (opcional)"],
  invited: ["Added. {email} gets a mail.", "Agregado. {email} recibirá un correo."],
  ended: ["The access has ended.", "El acceso ha terminado."],
  notAdded: ["This was not added. Check the address and the day: "
    + "the person may be on the list already, or the address cannot be used here.",
    "No se agregó. Revise el correo y el día: quizá la persona ya está en la lista o ese correo no se puede usar aquí."],
  spouse: ["Spouse",
    "Cónyuge"], partner: ["Partner", "Pareja"], parent: ["Parent", "Madre o padre"], child: ["Son or daughter", "Hijo o hija"],
  sibling: ["Brother or sister", "Hermano o hermana"], grandparent: ["Grandparent", "Abuelo o abuela"],
  grandchild: ["Grandchild", "Nieto o nieta"], relative: ["Other relative", "Otro familiar"], friend: ["Friend", "Amigo o amiga"],
  neighbor: ["Neighbor", "Vecino o vecina"], guardian: ["Guardian", "Tutor legal"],
  power_of_attorney: ["Health care agent", "Representante de salud"], other: ["Other", "Otra persona"],
};

/** A text in the language in use. @param {Word} word @param {Record<string, string | number>} [values] */
export const t = (word, values = {}) => catalogue[word][language.value === "es" ? 1 : 0]
  .replace(/\{(\w+)\}/g, (_, name) => String(values[name]));

/** The text of the API in the language in use. @param {{en: string, es: string}} text */
export const tText = (text) => text[/** @type {"en" | "es"} */ (language.value)];

/** The text of a code of the API, or the code itself. @param {string} code */
export const tCode = (code) => (code in catalogue ? t(/** @type {Word} */ (code)) : code);

const [date, clock] = [{ month: "short", day: "numeric" }, { hour: "numeric", minute: "2-digit" }];
const timeForms = /** @type {Record<string, Intl.DateTimeFormatOptions>} */ ({ date, day: { weekday: "short", ...date },
  moment: { ...date, ...clock }, all: { weekday: "short", ...date, ...clock } });

const region = () => `${language.value}-US`; // with the clock of 12 hours

/** A moment in the language in use.
 *  @param {string} at @param {string | undefined} zone @param {"all" | "day" | "date" | "moment"} [form] */
export const tTime = (at, zone, form = "all") =>
  new Intl.DateTimeFormat(region(), { ...timeForms[form], timeZone: zone }).format(new Date(at));

/** A calendar day. @param {string} day YYYY-MM-DD */
export const tDay = (day) =>
  new Intl.DateTimeFormat(region(), { dateStyle: "medium", timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));
