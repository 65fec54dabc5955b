"""Reads a file with a third-party X12 reader and prints the result as JSON: readers.py READER FILE."""

import io
import json
import logging
import sys


def pyx12(name):
    """Validates by the maps of the implementation guides, and returns the 999 that it would send."""
    import pyx12.params
    import pyx12.x12n_document

    said = []

    class Collect(logging.Handler):
        def emit(self, record):
            said.append(record.getMessage())

    log = logging.getLogger("pyx12")
    log.addHandler(Collect())
    log.propagate = False
    with open(name) as file:
        head = file.read(400)
    # It takes the guide of its answer from ST03, which an 835 does not have.
    answer = None if "ST" + head[3] + "835" in head else io.StringIO()
    ok = pyx12.x12n_document.x12n_document(param=pyx12.params.params(), src_file=name, fd_997=answer, fd_html=None)
    return {"ok": ok, "errors": said[:20], "answer": answer.getvalue() if answer else ""}


def linuxforhealth(name):
    """Builds its model of an 837P, which validates itself. It supports the second erratum of the guide, which changed no segment that Vigil writes."""
    from linuxforhealth.x12.io import X12ModelReader

    with open(name) as file:
        text = file.read().replace("005010X222A1", "005010X222A2")
    claims, lines, charge = 0, 0, 0
    with X12ModelReader(text) as reader:
        for model in reader.models():
            for billing in model.loop_2000a:
                for subscriber in billing.loop_2000b:
                    found = list(subscriber.loop_2300 or [])
                    for patient in subscriber.loop_2000c or []:
                        found += patient.loop_2300
                    for claim in found:
                        claims += 1
                        charge += round(claim.clm_segment.total_claim_charge_amount * 100)
                        lines += len(claim.loop_2400)
    return {"ok": claims > 0, "claims": claims, "lines": lines, "cents": int(charge)}


def oxedi(name):
    """Parses an 835 into tables."""
    import oxedi

    with open(name, "rb") as file:
        result = oxedi.parse(file.read())
    rows = {table: len(result.tables[table]) for table in result.tables}
    return {
        "ok": not result.diagnostics,
        "errors": [str(d) for d in result.diagnostics][:20],
        "claims": rows["claims"],
        "lines": rows["services"],
        "adjustments": rows["adjustments"],
        "others": rows["provider_adjustments"],
        "cents": int(result.sum_payments() * 100),
    }


if __name__ == "__main__":
    json.dump({"pyx12": pyx12, "linuxforhealth": linuxforhealth, "oxedi": oxedi}[sys.argv[1]](sys.argv[2]), sys.stdout)
