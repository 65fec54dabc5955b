// Field types that PocketBase lacks: encrypted text, optional numbers, and addresses, which are edited line by line.
// `app` and `t` are the dashboard's own globals.

const street = [
  { key: "line1", label: "Street", width: 6 },
  { key: "line2", label: "Second line", width: 6 },
  { key: "city", label: "City", width: 4 },
  { key: "state", label: "State", width: 2 },
];

// A patient's address is sealed as one JSON text.
const sealedAddress = {
  lines: [...street, { key: "zip", label: "ZIP", width: 3 }, { key: "country", label: "Country", width: 3 }],
  is: (props) => props.field.purpose === "patients.address",
  write: (lines) => lines ? JSON.stringify(lines) : "",
};

// Administrators see encrypted text as text.
app.fieldTypes.phi = withAddress({ ...app.fieldTypes.text, label: "PHI (encrypted)", icon: "ri-lock-line" }, sealedAddress);

// A payer's address is unencrypted JSON.
app.fieldTypes.json = withAddress(app.fieldTypes.json, {
  lines: [...street, { key: "postal_code", label: "ZIP", width: 6 }],
  is: (props) => props.field.name === "address",
  write: (lines) => lines,
});

// An optional number: an empty input means no value. The dashboard's own number input would store 0.
app.fieldTypes.optional_number = {
  ...app.fieldTypes.number,
  label: "Optional number",
  input: optionalNumberInput,
  view: (props) =>
    t.div({ className: "record-field-view field-type-number" }, () => {
      const value = props.record[props.field.name];
      return value == null ? t.span({ className: "missing-value" }) : t.span({ className: "txt" }, String(value));
    }),
};

function optionalNumberInput(props) {
  const id = "optional_number_" + app.utils.randomString();
  return t.div(
    { className: "record-field-input field-type-number" },
    t.div(
      { className: "field" },
      t.label(
        { htmlFor: id },
        t.i({ className: app.fieldTypes.optional_number.icon, ariaHidden: true }),
        t.span({ className: "txt" }, () => props.field.name),
      ),
      t.input({
        id,
        type: "number",
        step: "any",
        name: () => props.field.name,
        required: () => props.field.required,
        min: () => props.field.min,
        max: () => props.field.max,
        value: () => props.record[props.field.name] ?? "",
        oninput: (e) => {
          if (!e.target.validity.badInput) { // an incomplete number, such as "-"
            props.record[props.field.name] = e.target.value === "" ? null : Number(e.target.value);
          }
        },
      }),
    ),
    () => props.field.help ? t.div({ className: "field-help" }, props.field.help) : undefined,
  );
}

// withAddress edits a type's addresses line by line, and leaves its other fields unchanged.
function withAddress(type, kind) {
  return {
    ...type,
    input: (props) => kind.is(props) ? addressInput(props, kind, type.icon) : type.input(props),
    view: (props) => kind.is(props) ? addressView(props) : type.view(props),
  };
}

// linesOf returns the parts of an address, stored as JSON text or object. The service accepts no other form.
function linesOf(props) {
  const value = props.record[props.field.name] || {};
  return typeof value === "string" ? JSON.parse(value) : value;
}

function addressInput(props, kind, icon) {
  const id = "address_" + app.utils.randomString();
  const write = (key, value) => {
    const { [key]: _, ...others } = linesOf(props);
    const lines = value ? { ...others, [key]: value } : others;
    props.record[props.field.name] = kind.write(Object.keys(lines).length ? lines : null);
  };
  return t.div(
    { className: "record-field-input field-type-address", role: "group", ariaLabel: props.field.name },
    t.div({ className: "txt-hint m-b-5" }, t.i({ className: icon, ariaHidden: true }), t.span({ className: "txt" }, " " + props.field.name)),
    t.div(
      { className: "grid sm" },
      ...kind.lines.map(({ key, label, width }) =>
        t.div(
          { className: `col-sm-${width}` },
          t.div(
            { className: "field" },
            t.label({ htmlFor: id + key }, label),
            t.input({
              id: id + key,
              type: "text",
              autocomplete: "off",
              name: `${props.field.name}.${key}`, // the field name in the service's errors
              value: () => linesOf(props)[key] ?? "",
              oninput: (e) => write(key, e.target.value),
            }),
          ),
        )
      ),
    ),
  );
}

function addressView(props) {
  return t.div({ className: "record-field-view field-type-address" }, () => {
    const { line1, line2, city, state, zip, postal_code: code, country } = linesOf(props);
    const place = [state, zip ?? code].filter(Boolean).join(" ");
    const text = [line1, line2, city, place, country].filter(Boolean).join(", ");
    return text ? t.span({ className: "txt txt-ellipsis" }, text) : t.span({ className: "missing-value" });
  });
}
