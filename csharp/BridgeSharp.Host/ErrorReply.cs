using System.Text.Json.Serialization;

namespace BridgeSharp.Host;

/// <summary>An exception as Python is told of it.</summary>
/// <param name="Type">The full name of its type, the most general first known one where it is derived.</param>
/// <param name="Kinds">The full names of the types that it derives from, itself first.</param>
/// <param name="Message">Its message.</param>
/// <param name="Stack">Its stack.</param>
/// <param name="Failures">The replicas' failures, where it stands for them.</param>
internal sealed record ErrorReply(
    [property: JsonPropertyName("type")] string Type,
    [property: JsonPropertyName("kinds")] IReadOnlyList<string> Kinds,
    [property: JsonPropertyName("message")] string Message,
    [property: JsonPropertyName("stack")] string Stack,
    [property: JsonPropertyName("failures")] IReadOnlyList<FailureReply> Failures)
{
    /// <summary>Describe an exception.</summary>
    public static ErrorReply Of(Exception error)
        => new(Name(error), [.. KindsOf(error)], Text(error), error.StackTrace ?? "", error is ReplicaException { Failures: var failures }
            ? [.. failures.Select(failure => new FailureReply(
                failure.Replica, $"{failure.Device}", Name(failure.Error), failure.Error.Message, failure.Error.StackTrace ?? ""))]
            : []);

    /// <summary>A replica failure has its parts told one by one; its message is the first line.</summary>
    private static string Text(Exception error) => error is ReplicaException ? error.Message.Split('\n')[0] : error.Message;

    private static string Name(Exception error) => error.GetType().FullName!;

    private static IEnumerable<string> KindsOf(Exception error)
    {
        for (var type = error.GetType(); type is not null && type != typeof(object); type = type.BaseType)
        {
            yield return type.FullName!;
        }
    }
}

/// <summary>One replica's failure as Python is told of it.</summary>
/// <param name="Replica">The index of the replica.</param>
/// <param name="Device">Where it ran.</param>
/// <param name="Type">The full name of the exception's type.</param>
/// <param name="Message">Its message.</param>
/// <param name="Stack">Its stack.</param>
internal sealed record FailureReply(
    [property: JsonPropertyName("replica")] int Replica,
    [property: JsonPropertyName("device")] string Device,
    [property: JsonPropertyName("type")] string Type,
    [property: JsonPropertyName("message")] string Message,
    [property: JsonPropertyName("stack")] string Stack);
