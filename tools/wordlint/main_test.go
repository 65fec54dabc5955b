package main

import "testing"

func TestGoFile(t *testing.T) {
	lines, comments, messages := goFile("x.go", []byte("package x\n\n// Nobody is told.\n// Fine.\nvar a = \"the EMR says no\" // `told` is a wire value\nvar b, c = \"told\", `SELECT x AS told`\n"))
	if lines != 3 || len(comments) != 1 || comments[0] != (finding{"x.go", 3, "Nobody"}) {
		t.Errorf("%d lines, comments %v", lines, comments)
	}
	if len(messages) != 1 || messages[0] != (finding{"x.go", 5, "says"}) {
		t.Errorf("messages %v", messages)
	}
	if _, _, messages := goFile("x_test.go", []byte("package x\n\nvar a = \"the EMR says no\"\n")); len(messages) != 0 {
		t.Errorf("a test has messages %v", messages)
	}
}

func TestMarkdown(t *testing.T) {
	found := markdown("x.md", []byte("```\nwhoever\n```\nA `told` value, [here](told.md).\nIt is done in vain.\n"))
	if len(found) != 1 || found[0] != (finding{"x.md", 5, "in vain"}) {
		t.Errorf("%v", found)
	}
}

func TestJavaScript(t *testing.T) {
	found := javaScript("x.js", []byte("const asked = 1;\nhtml`<p>Nobody is here ${asked}</p>`; // fine\nf(\"say it again\");\n"))
	if len(found) != 2 || found[0].word != "Nobody" || found[1] != (finding{"x.js", 3, "say"}) {
		t.Errorf("%v", found)
	}
}

func TestReport(t *testing.T) {
	three := make([]finding, 3)
	for _, test := range []struct {
		comments, others []finding
		lines, status    int
	}{{three, nil, 1000, 0}, {three, nil, 999, 1}, {nil, three[:1], 1000, 1}, {nil, nil, 0, 0}} {
		if got := report(test.comments, test.others, test.lines); got != test.status {
			t.Errorf("%d of %d, %d elsewhere: %d, want %d", len(test.comments), test.lines, len(test.others), got, test.status)
		}
	}
}
