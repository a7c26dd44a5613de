namespace BridgeSharp;

/// <summary>The verbs, under the names of the Python package: <c>using static BridgeSharp.bridge;</c>.</summary>
public static partial class bridge
{
}
