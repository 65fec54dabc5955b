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
	stopWords = setOf("stop stopall quit end revoke optout cancel unsubscribe unsubscribeme alto parar pare paren cancelar detener terminar basta nomas baja",
		"stpo sotp tsop stopp stopit leavemealone")
	// certainStops are a request to stop also as the first or last sentence among others.
	certainStops = setOf("stop stopall optout unsubscribe")
	startWords   = setOf("start unstop restart resume iniciar comenzar reanudar empezar")
	infoWords    = setOf("info information informacion")
	// helpWords are a command only alone: with any other word they are a call for help.
	helpWords = setOf("help ayuda")
)

// The words of plain requests: a sentence of only these words, such as "please stop sending me texts".
var (
	stopVerbs = setOf("stop quit end cancel unsubscribe revoke remove delete erase withdraw withdrawing alto parar pare paren cancelar cancele cancelen cancela deje dejen dejar detener",
		"detengan basta quitar quiten quitenme quiteme borrar borren borrenme borreme eliminar eliminen eliminenme revoco revocar revoquen")
	// removals stop also "me" and "my number".
	removals = setOf("remove delete erase quitar quiten quitenme quiteme borrar borren borrenme borreme eliminar eliminen eliminenme")
	// objects are what a request stops.
	objects = setOf("text texts texting message messages messaging msg msgs sms reminder reminders notification notifications consent list contacting calling calls",
		"mensaje mensajes texto textos recordatorio recordatorios lista avisos notificaciones consentimiento",
		"enviarme mandarme escribirme contactarme llamarme llamadas")
	// contacts follow "do not".
	contacts = setOf("text contact message send want need call like wish",
		"escriban escriba escribas contacten contacte contactes manden mande mandes envien envie envies llamen llame llames molesten quiero deseo necesito")
	// directContacts need no object: "do not text me".
	directContacts = setOf("text contact message consent call llamen llame llames escriban escriba escribas contacten contacte contactes molesten")
	// notNow are the words that make "do not call" a matter of the moment, or of the patient's own calls.
	notNow   = setOf("i now back ahora")
	negators = setOf("dont not no never nunca")
	others   = setOf("can could would you u i me my us the these those this that any all of from to for your getting receiving sending receive want more",
		"anymore ever im am us them it off take number phone opt out longer immediately away right asap and a mi mis me de los las el la mas a al con recibir enviar mandar",
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
	case infoWords[bare], len(all) == 1 && helpWords[all[0].text]:
		return Help, false
	}
	if slices.ContainsFunc(all, func(w word) bool { return conditions[w.text] && w.text != "si" }) {
		return None, false
	}
	var parts []sentence
	for _, s := range sentences {
		parts = append(parts, clauses(s)...)
	}
	for i, part := range parts {
		isEdge := i == 0 || i == len(parts)-1 && !quotes[parts[i-1][len(parts[i-1])-1].text]
		if isEdge && certainStops[core(part)] || isStopRequest(part) {
			return Stop, len(parts) > 1
		}
	}
	if endsWithStop(all) {
		return Stop, true
	}
	return None, false
}

var (
	// quotes are the words before what a device shows: "it reads: STOP".
	quotes = setOf("says", "say", "said", "shows show showed reads read displays dice muestra pone sale")
	// withinSentence are the words before a "stop" that belongs to its sentence: "make it STOP", "the bus STOP".
	withinSentence = setOf("to it make makes the a an bus full will would should must wont cant doesnt didnt isnt couldnt wouldnt dont not no never nunca non light button sign")
)

// endsWithStop reports whether a text of small letters ends with STOP in capitals, as the messages write it: "chest pain STOP".
func endsWithStop(all sentence) bool {
	n := len(all) - 1
	if n < 1 || !certainStops[all[n].text] || !all[n].inCapitals {
		return false
	}
	isSmall := func(w word) bool { return !w.inCapitals }
	return slices.ContainsFunc(all[:n], isSmall) && !slices.ContainsFunc(all[:n], func(w word) bool { return withinSentence[w.text] || quotes[w.text] })
}

// core returns the words without courtesy and repetition, in one piece.
func core(s sentence) string {
	var out strings.Builder
	last := ""
	for _, w := range s {
		if !courtesy[w.text] && w.text != last {
			out.WriteString(w.text)
			last = w.text
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
		isRemoval := removals[words[verb]] && has(setOf("me number phone numero quitenme quiteme borrenme borreme eliminenme"))
		return (has(objects) || isOptOut || isRemoval || words[verb] == "unsubscribe") && !slices.ContainsFunc(words[:verb], func(w string) bool { return negators[w] })
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
		if (next == "me" || next == "nos" || next == "longer") && i+2 < len(words) {
			next = words[i+2]
		}
		isNoMore := (w == "no" && (next == "more" || next == "mas")) && !slices.Contains(words, "getting") && !slices.Contains(words, "receiving")
		isCall := next == "call" || strings.HasPrefix(next, "llam")
		if isCall && slices.ContainsFunc(words, func(w string) bool { return notNow[w] }) {
			return false
		}
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
