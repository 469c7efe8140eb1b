import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.Deflater;

/** Maps, strings, buffers outside of the heap and compression, as many times as the argument says. */
public class Work {
    static long seed = 12345;

    static int draw(int n) {
        seed = (seed * 1103515245L + 12345L) % 2147483648L;
        return (int) (seed % n);
    }

    public static void main(String[] args) {
        long sum = 0;
        for (int turn = 0; turn < Integer.parseInt(args[0]); turn++) {
            Map<String, Integer> words = new HashMap<>();
            for (int i = 0; i < 20000; i++) {
                words.merge("w" + Integer.toString(draw(3000), 36), 1, Integer::sum);
            }
            List<String> rows = new ArrayList<>();
            words.forEach((word, count) -> rows.add(word + "=" + count));
            rows.sort(null);
            byte[] text = String.join("; ", rows).getBytes();
            for (int i = 0; i < 200; i++) {
                ByteBuffer buffer = ByteBuffer.allocateDirect(64 + draw(20000));
                buffer.put(0, (byte) i);
                sum += buffer.get(0) + buffer.capacity();
            }
            // zlib's state comes from malloc.
            for (int i = 0; i < 20; i++) {
                Deflater deflater = new Deflater();
                deflater.setInput(text);
                deflater.finish();
                byte[] piece = new byte[4096];
                ByteArrayOutputStream out = new ByteArrayOutputStream();
                while (!deflater.finished()) {
                    out.write(piece, 0, deflater.deflate(piece));
                }
                deflater.end();
                sum += out.size();
            }
        }
        System.out.println(sum);
    }
}
