using System.Text.RegularExpressions;

namespace BridgeSharp.Conversion;

/// <summary>Names that change on the way.</summary>
public static class Names
{
    /// <summary>Strip a prefix, map by the first pattern that fits the whole name, add a prefix.</summary>
    /// <remarks>Spec: R29.3.</remarks>
    /// <param name="names">The names as they are.</param>
    /// <param name="table">Names and new names; each <c>*</c> stands for any text, the same in both.</param>
    /// <param name="strip">What is taken from the names that start with it.</param>
    /// <param name="prefix">What all names get.</param>
    /// <returns>New names by old ones, in their order.</returns>
    /// <exception cref="ArgumentException">
    /// A pattern or a prefix that fits no name, other counts of <c>*</c> in a pattern and its new name, or a new name twice.
    /// </exception>
    public static OrderedDictionary<string, string> rename(
        IEnumerable<string> names, IReadOnlyList<KeyValuePair<string, string>>? table = null, string? strip = null, string? prefix = null)
    {
        List<Rule> rules = [.. (table ?? []).Select(pair => Rule.Of(pair.Key, pair.Value))];
        List<string> listed = [.. names];
        if (!string.IsNullOrEmpty(strip) && !listed.Exists(name => name.StartsWith(strip, StringComparison.Ordinal)))
        {
            throw new ArgumentException($"convert: expected names that start with '{strip}', got none");
        }

        var (renamed, taken, used) = (new OrderedDictionary<string, string>(), new Dictionary<string, string>(), new HashSet<string>());
        foreach (var name in listed)
        {
            var own = strip is not null && name.StartsWith(strip, StringComparison.Ordinal) ? name[strip.Length..] : name;
            var fresh = prefix + Mapped(own, rules, used);
            if (!taken.TryAdd(fresh, name))
            {
                throw new ArgumentException($"convert: expected every new name once, got '{fresh}' for '{taken[fresh]}' and '{name}'");
            }

            renamed[name] = fresh;
        }

        List<string> unused = [.. rules.Select(rule => rule.Pattern).Distinct().Where(pattern => !used.Contains(pattern))];
        return unused.Count == 0
            ? renamed
            : throw new ArgumentException(
                $"convert: expected a name for every pattern, got none for {string.Join(", ", unused.Select(pattern => $"'{pattern}'"))}");
    }

    private static string Mapped(string name, List<Rule> rules, HashSet<string> used)
    {
        foreach (var rule in rules)
        {
            if (rule.Form.Match(name) is { Success: true } found)
            {
                _ = used.Add(rule.Pattern);
                return rule.Parts[0] + string.Concat(rule.Parts.Skip(1).Select((part, index) => found.Groups[index + 1].Value + part));
            }
        }

        return name;
    }

    /// <summary>A pattern, and the new name split where its texts go.</summary>
    private sealed record Rule(string Pattern, Regex Form, string[] Parts)
    {
        public static Rule Of(string pattern, string fresh)
        {
            var (own, parts) = (pattern.Split('*'), fresh.Split('*'));
            if (own.Length != parts.Length)
            {
                throw new ArgumentException($"convert: expected as many * in '{fresh}' as in '{pattern}', got {parts.Length - 1}");
            }

            var form = new Regex($@"\A{string.Join("(.*)", own.Select(Regex.Escape))}\z", RegexOptions.Singleline | RegexOptions.CultureInvariant);
            return new Rule(pattern, form, parts);
        }
    }
}
