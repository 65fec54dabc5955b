package replies

import (
	"slices"
	"strings"
)

// The phrases of emergencies, one a line. A word may have forms, separated by "|". Between two words "..." permits up to three words of any kind,
// and ".." only linking words, such as "in my". After "!" are words that follow a phrase of something else: "emergency contact". A word after "="
// must be typed without error, because another word is near: strike, cooking. After "^" it must be in capitals. A line after "~" is about a person:
// it does not count in a sentence that names a device or the practice.
const dangers = `
chest ... pain|pains|pian|hurt|hurts|hurting|killing|ache|aches|aching|tight|tightness|pressure|heavy|heaviness|squeezing|crushing|burning|discomfort
pain|pains|hurts|pressure|tightness|ache|heaviness|discomfort|burning|squeezing .. chest
cant|cnt|couldnt|unable ... breathe|breath|breathing|breth
cant|cnt|couldnt get ... air|breath
^sob
sob at|on|with|when|while rest|exertion|lying|walking|stairs|night|breath
catch .. breath
trouble|difficulty|difficult|hard|hardly|struggling|problem|problems|barely ... breathe|breath|breathing
short|shortness|out of breath
gasping ... air
not|isnt|arent|stopped breathing
=choking
heart attack
=stroke
face ... drooping|droop|droops|drooped
slurred|slurring speech|words
slurring
cant speak|talk ! right now at with to
cant move .. arm|leg|side|face|body
arm|face|side ... =numb|numbness
numb|numbness .. arm|face|side
passed|passing|pass out
fainted
fainting
feel|feeling faint
unconscious
unresponsive
seizure
seizures
~ collapsed|collapsing
~ not|isnt|arent|wont|doesnt|didnt =responding|respond ! to well
~ not|isnt|arent|wont|cant|cnt|doesnt|didnt|couldnt .. =wake|waking .. up|him|her|them
=heart .. stopped
=heart ... =racing
cardiac arrest
weakness|weak|paralyzed .. =side|arm|face|leg
sudden|suddenly ... weak|weakness|numb|numbness|confused|confusion|blind
cant|couldnt feel .. =arm|leg|legs|face|side|hand
cant|couldnt see ... eye|eyes
lost ... vision|eyesight
~ turning|turned|going =blue
bleeding ... wont|cant|doesnt|not|isnt|hasnt|never =stop|stopping|stopped
blood|bloody|tarry .. stool|stools|poop
took|taken|swallowed ... whole|entire|full =bottle
took|taken|swallowed .. =all .. pills|tablets ! this today yesterday tonight as like for on with before after
anaphylaxis
anaphylactic
allergic reaction
tongue|lips|lip|face|throat ... swelling|swollen|swelled
swelling|swollen .. tongue|lips|throat|face
cant|couldnt swallow ! the my pill pills big large it them those these
hit .. =head
broke|broken|fractured .. =hip|neck|leg
bleeding ... =lot|heavily|badly
heavy|severe|heavily bleeding
wont|cant|doesnt stop ... bleeding
i|ive|she|he|just|have =fell|fallen ! asleep behind in back ill
fell down
cant ... get up
overdose
overdosed
took|taken too many pills|meds|tablets|pastillas
worst headache
throat ... closing|swelling|closed
lips ... blue
blue lips
coughing|coughed|vomiting|vomited|spitting|throwing .. blood ! pressure sugar
call|called|calling .. 911
emergency ! contact contacts number phone
ambulance
im|am|hes|shes =dying
going|gonna|about .. die
dolor|dolores|dolr|duele|duelen|presion|opresion|ardor|molestia|punzada .. pecho|pexo
pecho|pexo ... duele|dolor|aprieta|apretado|oprimido|arde
no puedo|puede|podia ... respirar|respiro|rrespirar
cuesta|costando ... respirar
dificultad|dificil|trabajo|problemas ... respirar
falta|faltando .. aire|respiracion
sin aire|respiracion|aliento
=ahogo
ahogando
ahogandome
no respira|respiro
asfixia
asfixiando
ataque .. corazon|cardiaco
=infarto
derrame
desmaye
desmayo
desmayado
desmayada
perdi|perdio|perder .. conocimiento|conciencia
inconsciente
convulsion
convulsiones
sangrando|sangra|sangro ... mucho
mucha sangre
no para|deja|paro de sangrar
sobredosis
me|se =cai|cayo
no .. puedo|puede levantar|levantarme|levantarse
emergencia
ambulancia
llame|llamen|llamar|llama .. 911
me estoy muriendo
me muero ! de
voy a morir
no siento .. brazo|cara|lado|mano
no puedo hablar ! ahora en por con
cara .. caida|torcida
tosiendo|toso|vomitando|vomito|vomite|escupiendo|escupo .. sangre
aprieta|aprietan|oprime|arde|quema .. pecho
no siento .. =mitad|pierna
=debilidad .. lado|brazo|cara|pierna
brazo|cara|lado|mano ... dormido|dormida|entumecido|entumecida|paralizado|paralizada
durmio .. brazo|cara|lado|mano
~ no .. =despierta|reacciona
~ no .. =responde ! a
paro cardiaco
paro|detuvo .. corazon
labios|cara ... azules|azul|morados|morada
lengua|labios|cara|garganta ... hinchada|hinchado|hinchados|hinchando|cerrando|cierra
hincha|hinchada|hinchando|cierra|cerrando .. lengua|labios|cara|garganta
no .. entra|llega .. aire
no puedo|puede tragar
no puedo|puede mover .. brazo|pierna|lado|cara
tome|tomo|trague .. todas ... pastillas|pildoras ! de hoy esta como con
tome|tomo|trague .. todo .. frasco
golpee|golpeo|golpie .. cabeza
reaccion alergica
anafilaxia
hemorragia
peor dolor de cabeza
auxilio
`

const selfHarms = `
suicide
suicidal
kill|killing|hurt|hurting|harm|harming|hang|shoot myself
cutting myself
cut myself .. purpose
end|ending|take|taking .. my .. life
want|wanna|wish|like .. die
dont|not want to live|be ! in with at like here
dont|not wanna live
better off dead
end it all
no reason to live
wish .. dead
suicidio
suicidar
suicidarme
suicidarse
suicida
matarme
me quiero matar
quiero .. morir|morirme
quitarme|quitar .. vida
no quiero .. vivir ! en con
hacerme dano
acabar con mi vida
no vale .. pena vivir
`

// linking are the words that ".." permits.
var linking = setOf("in on my the of at across around inside left right side a to your his her up out some lots or being one both so was were i it really own",
	"de d en el la mi del lado izquierdo derecho mucho muy un una parte al me le se tengo no")

// phraseWord is one word of a phrase.
type phraseWord struct {
	forms []string
	// exact: a typing error makes another word.
	exact bool
	// inCapitals: in small letters it is another word.
	inCapitals bool
	// gap is the number of words that may precede it; onlyLinking restricts them.
	gap         int
	onlyLinking bool
}

type phrase struct {
	slots []phraseWord
	// ofPerson: with a device or the practice in its sentence the line does not count.
	ofPerson bool
	except   set
	// pieces are the forms of the phrase in one piece, without spaces: chestpain.
	pieces set
}

var dangerPhrases, selfHarmPhrases = phrases(dangers), phrases(selfHarms)

func phrases(lines string) (list []phrase) {
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		text, except, _ := strings.Cut(line, " ! ")
		text, ofPerson := strings.CutPrefix(text, "~ ")
		p := phrase{except: setOf(except), ofPerson: ofPerson}
		next := phraseWord{}
		pieces := []string{""}
		for _, w := range strings.Fields(text) {
			switch w {
			case "...":
				next.gap = 3
			case "..":
				next.gap, next.onlyLinking = 3, true
			default:
				next.exact, next.inCapitals = strings.HasPrefix(w, "="), strings.HasPrefix(w, "^")
				next.forms = strings.Split(strings.TrimLeft(w, "=^"), "|")
				var longer []string
				for _, piece := range pieces {
					for _, form := range next.forms {
						longer = append(longer, piece+form)
					}
				}
				p.slots, pieces, next = append(p.slots, next), longer, phraseWord{}
			}
		}
		p.pieces = setOf(pieces...)
		list = append(list, p)
	}
	return list
}

// match returns the index after the phrase if it begins at i, else 0; hasNo: a negation is within it, "my chest does not hurt".
func (p phrase) match(s sentence, i int) (end int, hasNo bool) {
	if len(p.slots) > 1 && p.pieces[s[i].text] {
		return i + 1, false
	}
	for n, slot := range p.slots {
		at := slot.find(s, i, n > 0)
		if at < 0 {
			return 0, false
		}
		for j := i; j < at; j++ {
			if denials[s[j].text] && (j+1 >= len(s) || !ends[s[j+1].text]) {
				hasNo = true
			}
		}
		i = at + 1
	}
	if i < len(s) && p.except[s[i].text] {
		return 0, false
	}
	return i, hasNo
}

func (t phraseWord) find(s sentence, from int, mayGap bool) int {
	for i := from; i < len(s) && i <= from+t.gap; i++ {
		if slices.ContainsFunc(t.forms, func(form string) bool {
			return (s[i].text == form || !t.exact && resembles(s[i].text, form)) && (s[i].inCapitals || !t.inCapitals)
		}) {
			return i
		}
		if !mayGap || t.onlyLinking && !linking[s[i].text] {
			break
		}
	}
	return -1
}

// The words around a negation.
var (
	denials = setOf("no not never without denies deny dont doesnt didnt isnt wasnt arent havent hasnt neither nor sin nunca ningun ninguna nada tampoco ni")
	// doubles make a second negation doubtful: "I can't say I have no chest pain".
	doubles = setOf("cant couldnt wont wouldnt dont doesnt isnt not never")
	// reaching are the words between a negation and what it denies.
	reaching = setOf("any a an the more longer having have had feel feeling felt of my am is me been getting el la un una tengo tenido siento hay es esta ha mas mi de ya le")
	// alternatives continue a denied list. "And" does not: "no fever and chest pain".
	alternatives = setOf("or nor ni o")
	ends         = setOf("stop stopped stopping quit parar para deja")
)

// emergencyOf returns the emergency that a text names and does not clearly deny. A phrase is denied
// only by a negation directly before or within it, in the same line and part of the sentence.
// Self-harm cannot be denied.
func emergencyOf(sentences []sentence) Emergency {
	found := NoEmergency
	isCommand := len(sentences) == 1 && len(sentences[0]) == 1 && helpWords[sentences[0][0].text]
	for _, s := range sentences {
		if names(s, selfHarmPhrases, false) {
			return SelfHarm
		}
		if isBare911(s) || !isCommand && slices.ContainsFunc(clauses(s), isCallForHelp) || names(s, dangerPhrases, true) {
			found = Danger
		}
	}
	return found
}

func isBare911(s sentence) bool { return core(s) == "911" }

// The words of a call for help. A call has one of the cries, and only words of the others: "help with my cuff" is none.
var (
	cries    = setOf("help helpme ayuda ayudame ayudeme ayudenme auxilio socorro")
	helpless = setOf("need needs i we he she me us him her them someone anyone send get now asap right away immediately urgent urgently quick quickly fast really badly",
		"somebody", "so very much in and 911 necesito necesitamos necesita me mi nos mande manden urgente rapido alguien")
	// offers are the words that make "can help" an offer: "I can help".
	offers = setOf("i we")
)

// isCallForHelp reports whether a clause calls for help and names nothing that help is needed with.
func isCallForHelp(clause sentence) bool {
	hasCry, hasCan, hasOffer := false, false, false
	for _, w := range clause {
		isCan := w.text == "can" || w.text == "could" || w.text == "puede"
		if !cries[w.text] && !helpless[w.text] && !courtesy[w.text] && !isCan {
			return false
		}
		hasCry, hasCan, hasOffer = hasCry || cries[w.text], hasCan || isCan, hasOffer || offers[w.text]
	}
	return hasCry && (!hasCan || !hasOffer)
}

// inanimate are the devices and people of the practice that do not respond.
var inanimate = setOf("light led battery cuff device monitor machine app phone screen tablet scale meter oximeter thermometer hub website site portal page button computer link bluetooth wifi",
	"you noone one office clinic doctor nurse nadie equipo aparato aplicacion telefono pantalla pagina bascula medidor consultorio clinica doctor enfermera")

// names reports whether one of the phrases is in the sentence, undenied.
func names(s sentence, list []phrase, canDeny bool) bool {
	deniedUntil := map[int]bool{}
	for i := range s {
		for _, p := range list {
			end, hasNo := p.match(s, i)
			if end == 0 || isContact(s, i) || p.ofPerson && slices.ContainsFunc(s, func(w word) bool { return inanimate[w.text] }) {
				continue
			}
			if !canDeny || !hasNo && !isDenied(s, i, deniedUntil) {
				return true
			}
			deniedUntil[end] = true
		}
	}
	return false
}

// isContact reports whether "emergencia" at i only names a contact, as in "contacto de emergencia".
func isContact(s sentence, i int) bool {
	return s[i].text == "emergencia" && i >= 2 && setOf("contacto contactos numero telefono")[s[i-2].text]
}

// isDenied reports whether a negation precedes the phrase at i. A phrase that begins with one, such
// as "can't breathe", is not denied by it.
func isDenied(s sentence, i int, deniedUntil map[int]bool) bool {
	if denials[s[i].text] || s[i].text == "cant" || s[i].text == "unable" {
		return false
	}
	if i > 0 && alternatives[s[i-1].text] && deniedUntil[i-1] {
		return true
	}
	for j := i - 1; j >= 0 && i-j <= 5; j-- {
		if s[j+1].opens || s[j+1].afterComma {
			return false
		}
		if denials[s[j].text] {
			return !slices.ContainsFunc(s[:j], func(w word) bool { return doubles[w.text] })
		}
		if !reaching[s[j].text] {
			return false
		}
	}
	return false
}
