using System.Globalization;
using System.Text;
using System.Text.Json;

namespace BridgeSharp.Checkpoint;

/// <summary>JSON, read and written alike in both languages.</summary>
internal static class JsonText
{
    private static readonly JsonDocumentOptions Options = new() { MaxDepth = 1000 };

    /// <summary>Parse JSON; names that are there twice stay in it.</summary>
    /// <param name="text">What may be JSON.</param>
    /// <returns>The value, or null where the text is none.</returns>
    public static JsonElement? Parse(string text)
    {
        try
        {
            using var document = JsonDocument.Parse(text, Options);
            Check(document.RootElement);
            return document.RootElement.Clone();
        }
        catch (Exception error) when (error is JsonException or InvalidOperationException or ArgumentException)
        {
            return null;
        }
    }

    /// <summary>Write a text as Python does, in ASCII.</summary>
    public static string Quoted(string text)
    {
        var written = new StringBuilder("\"");
        foreach (var unit in text)
        {
            _ = unit switch
            {
                '"' or '\\' => written.Append('\\').Append(unit),
                '\n' => written.Append("\\n"),
                '\r' => written.Append("\\r"),
                '\t' => written.Append("\\t"),
                '\b' => written.Append("\\b"),
                '\f' => written.Append("\\f"),
                < ' ' or > '~' => written.Append(CultureInfo.InvariantCulture, $"\\u{(int)unit:x4}"),
                _ => written.Append(unit),
            };
        }

        return written.Append('"').ToString();
    }

    /// <summary>Write a finite number as Python does: the shortest digits that give its bits, and a point or an exponent.</summary>
    public static string Number(double value)
    {
        var sign = double.IsNegative(value) ? "-" : "";
        var parts = Math.Abs(value).ToString("R", CultureInfo.InvariantCulture).Split('E');
        var whole = parts[0].Split('.')[0];
        var all = parts[0].Replace(".", "", StringComparison.Ordinal);
        var digits = all.TrimStart('0').TrimEnd('0');

        // The number is 0.DIGITS times 10 to the power of this.
        var power = whole.Length - (all.Length - all.TrimStart('0').Length) + (parts.Length > 1 ? int.Parse(parts[1], CultureInfo.InvariantCulture) : 0);
        return sign + (digits.Length, power) switch
        {
            (0, _) => "0.0",
            (_, > 16 or < -3) => string.Create(CultureInfo.InvariantCulture, $"{digits[0]}{(digits.Length > 1 ? "." : "")}{digits[1..]}e{power - 1:+00;-00}"),
            (_, <= 0) => $"0.{new string('0', -power)}{digits}",
            var (count, _) when count <= power => $"{digits.PadRight(power, '0')}.0",
            _ => $"{digits[..power]}.{digits[power..]}",
        };
    }

    /// <summary>Tell whether UTF-8 can write a text.</summary>
    public static bool IsText(string text)
    {
        for (var i = 0; i < text.Length; i++)
        {
            if (char.IsSurrogate(text[i]) && !(i + 1 < text.Length && char.IsSurrogatePair(text[i], text[++i])))
            {
                return false;
            }
        }

        return true;
    }

    /// <summary>Read every text, which fails for an escaped half of a pair of surrogates.</summary>
    private static void Check(JsonElement element)
    {
        switch (element.ValueKind)
        {
            case JsonValueKind.Object:
                foreach (var member in element.EnumerateObject())
                {
                    _ = member.Name;
                    Check(member.Value);
                }

                break;
            case JsonValueKind.Array:
                foreach (var item in element.EnumerateArray())
                {
                    Check(item);
                }

                break;
            case JsonValueKind.String:
                _ = element.GetString();
                break;
            default:
                break;
        }
    }
}
