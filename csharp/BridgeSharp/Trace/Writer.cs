using System.Text;
using System.Text.Encodings.Web;
using System.Text.Json;

namespace BridgeSharp.Trace;

/// <summary>Writes records to <c>trace.jsonl</c> in a folder, and whole tensors beside it.</summary>
/// <remarks>
/// What was written is on its way to the disk after each call: a program that is killed leaves a trace that can be read
/// up to there. Spec: R30.3.
/// </remarks>
internal sealed class Writer : IDisposable
{
    private static readonly JsonSerializerOptions Json = new() { Encoder = JavaScriptEncoder.UnsafeRelaxedJsonEscaping };

    private readonly string folder;
    private readonly StreamWriter file;
    private long order;
    private bool closed;

    /// <summary>Begin a trace.</summary>
    /// <param name="folder">The folder of the trace, made where it is missing; a trace in it is replaced.</param>
    /// <param name="about">What the first line says besides format and version.</param>
    public Writer(string folder, OrderedDictionary<string, object?> about)
    {
        this.folder = folder;
        Directory.CreateDirectory(folder);
        var tensors = Path.Combine(folder, "tensors");
        foreach (var old in Directory.Exists(tensors) ? Directory.GetFiles(tensors, "*.bin") : [])
        {
            File.Delete(old);
        }

        file = new StreamWriter(Path.Combine(folder, "trace.jsonl"), append: false, new UTF8Encoding(false)) { NewLine = "\n" };
        OrderedDictionary<string, object?> head = new()
        {
            ["format"] = "bridge trace",
            ["version"] = 1,
            ["projections"] = new { buckets = Signs.Buckets, width = Signs.Width, rows = Signs.Rows },
        };
        foreach (var (key, value) in about)
        {
            head[key] = value;
        }

        Line(head);
        file.Flush();
    }

    /// <summary>Write records, with the bytes of those tensors that are kept whole, and number them.</summary>
    public void Write(IEnumerable<Entry> entries)
    {
        foreach (var (record, content) in entries)
        {
            var numbered = record with { order = order };
            if (content is not null && record.tensor is not null)
            {
                var name = FormattableString.Invariant($"tensors/{order:D8}.bin");
                Directory.CreateDirectory(Path.Combine(folder, "tensors"));
                File.WriteAllBytes(Path.Combine(folder, name), content);
                numbered = numbered with { tensor = record.tensor with { file = name } };
            }

            Line(numbered.to_json());
            order++;
        }

        file.Flush();
    }

    /// <summary>End the trace; again is harmless.</summary>
    public void Close(int steps)
    {
        if (!closed)
        {
            Line(new() { ["end"] = true, ["records"] = order, [nameof(steps)] = steps });
        }

        Dispose();
    }

    /// <summary>Close the file.</summary>
    public void Dispose()
    {
        closed = true;
        file.Dispose();
    }

    private void Line(OrderedDictionary<string, object?> content) => file.WriteLine(JsonSerializer.Serialize(content, Json));
}
