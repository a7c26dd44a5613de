using System.Diagnostics;

namespace BridgeSharp.Trace;

/// <summary>Where in the user's code something was called.</summary>
internal static class CallSite
{
    /// <summary>Return <c>file:line</c> of the innermost frame that is neither TorchSharp's nor this library's.</summary>
    /// <returns>The place, or null where no symbols say it.</returns>
    public static string? Find()
    {
        foreach (var frame in new StackTrace(fNeedFileInfo: true).GetFrames())
        {
            if (frame.GetFileName() is { } file && !IsOurs(frame))
            {
                return FormattableString.Invariant($"{file}:{frame.GetFileLineNumber()}").Replace('\\', '/');
            }
        }

        return null;
    }

    private static bool IsOurs(StackFrame frame)
    {
#pragma warning disable IL2026 // Where trimming took the method, the frame counts as the user's.
        var assembly = frame.GetMethod()?.DeclaringType?.Assembly;
#pragma warning restore IL2026
        return assembly == typeof(CallSite).Assembly || assembly == typeof(TorchSharp.torch).Assembly;
    }
}
