import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's tools, one after another in one process: a line of standard input is a class and its arguments, by tabs.
 *
 * A tool that ends its process when all went well does not end this one.
 */
public class KafkaTools {
    public static void main(String[] none) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            if (code != 0) System.exit(code);
        });
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            String[] args = Arrays.copyOfRange(words, 1, words.length);
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) args);
            System.out.println("--- done");
            System.out.flush();
        }
    }
}
