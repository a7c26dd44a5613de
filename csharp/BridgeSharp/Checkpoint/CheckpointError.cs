namespace BridgeSharp.Checkpoint;

/// <summary>A file that is not what was expected; the message names the file.</summary>
/// <param name="message">What was expected, and what there was.</param>
/// <param name="inner">The cause, if there is one.</param>
public sealed class CheckpointException(string message, Exception? inner = null) : ArgumentException(message, inner);
