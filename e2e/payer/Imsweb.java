import com.imsweb.x12.Loop;
import com.imsweb.x12.reader.X12Reader;
import java.io.File;

/** Reads an 837P with imsweb's x12-parser. Prints each error, then "claims" and "lines" with their numbers: Imsweb FILE. */
class Imsweb {
    public static void main(String[] args) throws Exception {
        X12Reader reader = new X12Reader(X12Reader.FileType.ANSI837_5010_X222, new File(args[0]));
        reader.getFatalErrors().forEach(System.out::println);
        reader.getErrors().forEach(System.out::println);
        for (String[] count : new String[][] {{"claims", "2300"}, {"lines", "2400"}}) {
            System.out.println(count[0] + " " + reader.getLoops().stream().mapToInt(loop -> countOf(loop, count[1])).sum());
        }
    }

    static int countOf(Loop loop, String id) {
        return (id.equals(loop.getId()) ? 1 : 0) + loop.getLoops().stream().mapToInt(inner -> countOf(inner, id)).sum();
    }
}
