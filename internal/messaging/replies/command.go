package replies

import (
	"slices"
	"strings"
)

// The words of commands. Source: 47 CFR 64.1200(a)(10) for stop, quit, end, revoke, opt out, cancel and unsubscribe; the others are those of the
// carriers' programs, and their Spanish forms.
var (
	// courtesy may stand beside a command.
	courtesy = setOf("please pls plz thanks thank you hi hello hey ok okay yes now just so much again already sir madam everyone",
		"por favor porfavor porfa gracias hola si ya ahora buenos buenas dias tardes noches")
	stopWords = setOf("stop stopall quit end revoke optout cancel unsubscribe unsubscribeme alto parar pare paren cancelar detener basta nomas baja",
		"stpo sotp tsop stopp stopit leavemealone")
	// certainStops are a request to stop also as the first or last sentence among others.
	certainStops = setOf("stop stopall optout unsubscribe")
	startWords   = setOf("start unstop restart resume iniciar comenzar reanudar empezar")
	helpWords    = setOf("help helpme ineedhelp ayuda ayudame ayudeme necesitoayuda info information informacion")
)

// The words of plain requests: a sentence of only these words, such as "please stop sending me texts".
var (
	stopVerbs = setOf("stop quit end cancel unsubscribe revoke remove alto parar pare paren cancelar cancele cancelen cancela deje dejen dejar detener",
		"detengan basta quitar quiten quitenme quiteme borrar borrenme borreme eliminar eliminenme revoco revocar revoquen")
	// objects are what a request stops.
	objects = setOf("text texts texting message messages messaging msg msgs sms reminder reminders notification notifications consent list contacting",
		"mensaje mensajes texto textos recordatorio recordatorios lista avisos notificaciones consentimiento",
		"enviarme mandarme escribirme contactarme")
	// contacts follow "do not".
	contacts = setOf("text contact message send want need call like",
		"escriban escriba escribas contacten contacte contactes manden mande mandes envien envie envies llamen llame llames molesten quiero deseo necesito")
	// directContacts need no object: "do not text me".
	directContacts = setOf("text contact message escriban escriba escribas contacten contacte contactes molesten")
	negators       = setOf("dont not no never nunca")
	others         = setOf("can could would you u i me my us the these those this that any all of from to for your getting receiving sending receive want more",
		"anymore ever im am us them it off take number phone opt out immediately away right asap and a mi mis me de los las el la mas a al con recibir enviar mandar",
		"estos esos todos todo su lo que darme dar denme baja texto numero")
	conditions = setOf("if when unless until si cuando hasta")
)

// commandOf returns the request about the messages in a text, and whether the text has more than that.
func commandOf(sentences []sentence) (command Command, hasMore bool) {
	var all sentence
	for _, s := range sentences {
		all = append(all, s...)
	}
	switch bare := core(all); {
	case isStopWord(bare):
		return Stop, false
	case startWords[bare]:
		return Start, false
	case helpWords[bare]:
		return Help, false
	}
	if slices.ContainsFunc(all, func(w word) bool { return conditions[w.text] && w.text != "si" }) {
		return None, false
	}
	for i, s := range sentences {
		isEdge := i == 0 || i == len(sentences)-1
		if isEdge && certainStops[core(s)] || slices.ContainsFunc(clauses(s), isStopRequest) {
			return Stop, len(sentences) > 1 || len(clauses(s)) > 1
		}
	}
	return None, false
}

// core returns the words without courtesy, in one piece.
func core(s sentence) string {
	var out strings.Builder
	for _, w := range s {
		if !courtesy[w.text] {
			out.WriteString(w.text)
		}
	}
	return out.String()
}

func isStopWord(bare string) bool { return stopWords[bare] || resembles(bare, "unsubscribe") }

// clauses divides a sentence at commas and lines.
func clauses(s sentence) (list []sentence) {
	for i, w := range s {
		if i == 0 || w.opens || w.afterComma {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], w)
	}
	return list
}

// isStopRequest reports whether a clause requests no further messages in plain words. A word that belongs to no such request, such as
// "appointment" or "night", leaves the clause to a person.
func isStopRequest(clause sentence) bool {
	words := make([]string, len(clause))
	for i, w := range clause {
		words[i] = w.text
		if resembles(w.text, "unsubscribe") {
			words[i] = "unsubscribe"
		}
	}
	if isWrongNumber(words) {
		return true
	}
	for _, w := range words {
		if !stopVerbs[w] && !objects[w] && !contacts[w] && !negators[w] && !others[w] && !courtesy[w] {
			return false
		}
	}
	has := func(s set) bool { return slices.ContainsFunc(words, func(w string) bool { return s[w] }) }
	verb := slices.IndexFunc(words, func(w string) bool { return stopVerbs[w] })
	isOptOut := slices.Contains(words, "opt") && slices.Contains(words, "out")
	isOffList := slices.Contains(words, "off") && slices.Contains(words, "list") || containsInOrder(words, "de", "baja")
	if verb < 0 && (isOptOut || isOffList) {
		return !has(negators)
	}
	if verb >= 0 {
		return (has(objects) || isOptOut || words[verb] == "unsubscribe") && !slices.ContainsFunc(words[:verb], func(w string) bool { return negators[w] })
	}
	return asksForNoMore(words, has(objects))
}

// asksForNoMore reports whether words without a verb that stops request no messages: "do not text me", "no more messages".
func asksForNoMore(words []string, hasObject bool) bool {
	for i, w := range words {
		if !negators[w] || i+1 == len(words) {
			continue
		}
		next := words[i+1]
		if (next == "me" || next == "nos") && i+2 < len(words) {
			next = words[i+2]
		}
		isNoMore := (w == "no" && (next == "more" || next == "mas")) && !slices.Contains(words, "getting") && !slices.Contains(words, "receiving")
		if directContacts[next] || hasObject && (contacts[next] || isNoMore) {
			return true
		}
	}
	return false
}

// isWrongNumber reports whether the clause states that the number is another person's, who never consented.
func isWrongNumber(words []string) bool {
	return len(words) <= 6 && (containsInOrder(words, "wrong", "number") || containsInOrder(words, "numero", "equivocado"))
}

// containsInOrder reports whether the second word follows the first.
func containsInOrder(words []string, first, second string) bool {
	i := slices.Index(words, first)
	return i >= 0 && i+1 < len(words) && words[i+1] == second
}
