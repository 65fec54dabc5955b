package messaging

import (
	"regexp"
	"strings"
)

// Lists of words cannot be complete; each expression has the words that staff of a practice write. They match folded text: lower case, without accents.
const (
	weakMeasures = `readings?|lecturas?|mediciones|medicion|levels?|niveles|values?|valor(?:es)?|numbers?|numeros?|results?|resultados?|labs?`
	weakVerdicts = `bad|normal|fine|good|mal[oa]?s?|normales|buen[oa]s?|bajo|alto`
	verdicts     = `high(?:er)?|low(?:er)?|elevated|abnormal|critical|dangerous|irregular|rising|falling|dropp(?:ed|ing)|spik(?:ed|ing)|went (?:up|down)|worse|worsening|raised|worr\w*|concern\w*|` +
		`out of range|(?:above|below) (?:your|the|his|her) (?:target|limit|goal|range|normal)|altas?|baj[ao]s|elevad[oa]s?|anormal(?:es)?|critic[oa]s?|peligros[oa]s?|irregulares|peor(?:es)?|` +
		`subio|preocup\w*|fuera de rango|por (?:encima|debajo) de|(?:esta|es|fue|salio|muy|demasiado|sigue|tan) (?:\w+ )?(?:alt|baj)[oa]s?`
)

var (
	measures = regexp.MustCompile(`\b(?:pressures?|presion(?:es)?|tension|bp|pa|sugars?|azucar|glucos[ea]|glucometer|glucometro|oxygen|oxigeno|saturation|saturacion|spo2|weight|peso|pulse|pulso|` + //nolint:misspell // Spanish
		`heart ?rate|ritmo|frecuencia|temperature|temperatura|fever|fiebre|a1c|hba1c|ha?emoglobin|hemoglobina|creatinin[ae]|potassium|potasio|sodium|sodio)\b`)

	// harmless are phrases with words of [results] that say nothing about a person.
	harmless = regexp.MustCompile(`\b(?:battery|batteries|bateria|baterias|pilas?|signal|senal|volume|volumen)\b[^.!?]{0,20}\b(?:low|altas?|baj[oa]s?|gastadas?)\b|\blow battery\b` +
		`|\bgood (?:morning|afternoon|evening|day|night|time)\b|\bbuen(?:os|as)? (?:dias?|tardes|noches)\b|\b(?:do not|don't|not to) worry\b|\bno se preocupe\b`)
	results = regexp.MustCompile(`\b(?:` + verdicts + `)\b|\b(?:` + weakMeasures + `)\b[^.!?]{0,40}\b(?:` + weakVerdicts + `)\b|\b(?:` + weakVerdicts + `)\b[^.!?]{0,15}\b(?:` + weakMeasures + `)\b`)

	links = regexp.MustCompile(`https?:|www\.|\b[a-z0-9-]{2,}\.[a-z]{2,}/|\b[a-z0-9-]{2,}\.(?:com|org|net|edu|gov|health|us|me|mx|io|ly|gl|co|app|info|page|site|link|online|care|clinic|example)\b|\bdot (?:com|org|net|edu|gov|health|us|io|co|app|info|example)\b`)

	diagnosisCode = regexp.MustCompile(`\b[A-TV-Z]\d[0-9AB](?:\.[0-9A-Z]{1,4})?\b`)
	diagnoses     = regexp.MustCompile(`\b(?:diagnos\w*|hyperten\w*|hiperten\w*|hypoten\w*|hipoten\w*|diabet\w*|prediabet\w*|pre-diabet\w*|heart|cardi[aoe]\w*|corazon|` +
		`insuficiencia|infarto|htn|chf|hf|dm\d?|t[12]dm?|copd|epoc|tia|gerd|ptsd|adhd|tdah|uti|sti|std|asthma\w*|asma\w*|cancer\w*|tumou?r\w*|hiv|vih|aids|sida|depress\w*|depresi\w*|` +
		`anxi\w*|ansiedad|bipolar|schizo\w*|esquizo\w*|kidneys?|renal\w*|rinon\w*|liver|higado|lungs?|pulmon\w*|dialysis|dialisis|ckd|stroke|derrame|ictus|pregnan\w*|embaraz\w*|preeclamp\w*|` +
		`miscarr\w*|menopau\w*|afib|atrial|auricular|arrhythm\w*|arritmi\w*|hepat\w*|cirrho\w*|cirro\w*|dementia|demencia|alzheimer\w*|parkinson\w*|epilep\w*|obes\w*|cholesterol|colesterol|` +
		`apnea|pneumonia|neumonia|covid\w*|flu|gripe|addict\w*|adiccion\w*|alcoholi\w*|overdose|sobredosis|suicid\w*|angina|anemi\w*|thyroid\w*|tiroid\w*|seizures?|convulsion\w*|sepsis|` +
		`infect\w*|infecci\w*|ulcer\w*|gout|migra(?:ine|na)\w*|bronch\w*|bronqu\w*|fibros\w*|carcinom\w*|lymphom\w*|linfom\w*|melanom\w*|glaucom\w*|` +
		`\w*(?:glyc|gluc|leuk|leuc|lipid|natr|kal|ur|isch|isqu)emi[ac]\w*|\w{3,}(?:itis|osis|pathy|patia|algia|ectomy|ectomia)|` +
		// complaints
		`pains?|painful|dolor\w*|swell\w*|swollen|hincha\w*|dizz\w*|mare(?:os?|ad[oa])|faint\w*|desmay\w*|short(?:ness)? of breath|breathless\w*|falta de aire|cough\w*|tos|bleed\w*|` +
		`blood|sangr\w*|palpita\w*|nausea\w*|vomit\w*|wound\w*|you fell|your fall|` +
		// specialties and treatments
		`onco\w*|nephro\w*|nefro\w*|neuro\w*|psych\w*|psiqu\w*|psico\w*|urolog\w*|gyn\w*|ginec\w*|chemo\w*|quimio\w*|surg(?:ery|ical|eon)\w*|cirug\w*|ciruj\w*|biops\w*|transplant\w*|trasplant\w*|` +
		`pacemaker|marcapasos?|stents?|rehab\w*|x-ray|radiograf\w*|nebuliz\w*)\b`)

	medicines = regexp.MustCompile(`\b(?:\w{2,}(?:pril|sartan|olol|statins?|statina|dipine|dipino|formin|formina|gliptin|gliptina|gliflozin|gliflozina|glutide|glutida|thiazide|tiazida|semide|semida|tanide|` +
		`parin|parina|xaban|oxetine|oxetina|azepam|zolam|azole|azol|mycin|micina|cillin|cilina|cycline|ciclina|floxacin|floxacino|prazole|prazol|tidine|lactone|lactona|afil|afilo|caine|caina|mab|tinib|` +
		`ciclovir|grel|grelor|lukast|zosina?|apine|apina|idona?|idone|pamilo?|tiazem|profen[oa]?|coxib|triptan|dronate|glitazone|isone|isona|solone|terol|tropium|tropio)|gl[iy]\w{2,}(?:ide|ida)|nitro\w*|isosorbid\w*|` +
		`insulin\w*|warfarin\w*|coumadin|aspirin\w*|asa|nph|hctz|digoxin\w*|amiodaron\w*|hydralazin\w*|hidralazin\w*|clonidin\w*|metolazon\w*|minoxidil|sacubitril|ivabradin\w*|ranolazin\w*|flecainid\w*|dofetilid\w*|` +
		`gabapentin\w*|levothyrox\w*|levotirox\w*|salbutamol|tylenol|acetaminophen|paracetamol|ibuprofen\w*|naproxen\w*|opioid\w*|morphin\w*|morfina|oxycodon\w*|methadon\w*|metadona|suboxone|sertralin\w*|` +
		`citalopram|escitalopram|bupropion\w*|venlafaxin\w*|trazodon\w*|lithium|litio|allopurinol|alopurinol|colchicin\w*|colchicina|methotrexat\w*|metotrexato|levodopa|donepezil\w*|memantin\w*|estradiol|testosteron\w*|tamox\w*|` +
		`\w*setraceta\w*|levetirac\w*|montelu\w*|cetirizin\w*|loratadin\w*|tamsulosin\w*|chlorthalidon\w*|clortalidona|spironolact\w*|eplerenon\w*|` +
		`lasix|bumex|demadex|aldactone|eliquis|xarelto|plavix|brilinta|ozempic|wegovy|mounjaro|zepbound|trulicity|victoza|jardiance|farxiga|januvia|entresto|lipitor|crestor|zocor|norvasc|diovan|cozaar|benicar|coreg|toprol|` +
		`lopressor|zestril|humalog|novolog|lantus|tresiba|basaglar|levemir|synthroid|advair|symbicort|spiriva|flomax|viagra|cialis|zoloft|prozac|lexapro|wellbutrin|xanax|ambien|humira|` +
		`blood thinner|water pill|diuretic\w*|anticoag\w*|(?:beta|calcium)[ -]?(?:blocker|bloqueador)\w*|betabloquea\w*|inhalers?|inhalador(?:es)?|antibiotic\w*|antidepres\w*|painkiller\w*|analgesic\w*)\b`)
)

// firstNames are frequent first names in the United States that are no words in English or Spanish. Names of the patient and of staff are known.
var firstNames = func() map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(`james john robert michael david william richard joseph thomas charles christopher daniel matthew anthony steven paul andrew joshua kenneth kevin brian
		george timothy ronald edward jason jeffrey ryan jacob gary nicholas eric jonathan stephen larry justin scott brandon benjamin samuel gregory alexander
		patrick dennis tyler aaron jose adam nathan henry zachary douglas peter kyle noah ethan jeremy walter keith roger terry sean gerald carl dylan harold
		jesse bryan lawrence arthur gabriel bruce logan billy joe alan juan elijah willie albert wayne randy vincent liam roy bobby caleb bradley russell
		lucas mary patricia jennifer linda elizabeth barbara susan jessica karen sarah lisa nancy sandra betty ashley emily kimberly margaret donna michelle
		amanda melissa deborah stephanie rebecca sharon laura cynthia dorothy amy kathleen angela shirley emma brenda pamela nicole anna samantha katherine
		christine helen debra rachel carolyn janet maria catherine heather diane olivia julie joyce ruth lauren kelly christina joan evelyn judith andrea
		hannah megan cheryl jacqueline martha teresa sara janice ann ana kathryn abigail sophia frances alice judy isabella julia denise danielle marilyn
		beverly charlotte natalie theresa diana brittany doris kayla alexis lori luis carlos jorge miguel pedro antonio francisco manuel javier rafael ramon
		raul fernando ricardo eduardo sergio alberto alejandro roberto enrique mario oscar hector ruben pablo diego andres ernesto guillermo carmen guadalupe
		juana josefina elena yolanda veronica leticia alicia silvia adriana claudia gabriela lucia valentina camila mariana fernanda daniela beatriz isabel
		ines carla maribel marisol graciela esther irma bob tom sam mike dave steve bill ted ben dan tim jeff greg nick alex kate jane jill beth peggy`) {
		set[name] = true
	}
	return set
}()
