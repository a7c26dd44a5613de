using System.Collections.Concurrent;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;
using Mono.Cecil;
using Mono.Cecil.Cil;
using Mono.Cecil.Rocks;

namespace BridgeSharp.Trace;

/// <summary>Loads the assembly of a port so that every <c>forward</c> that it calls can be observed.</summary>
/// <remarks>
/// Its code is rewritten in memory, and that of the assemblies beside it; nothing on disk changes. What cannot be
/// rewritten is loaded as it is, and a trace says so. Spec: R33.1, R33.2.
/// </remarks>
public static class PortAssembly
{
    private static readonly ConditionalWeakTable<AssemblyLoadContext, ConcurrentDictionary<string, Lazy<Assembly>>> Loaded = [];
    private static readonly ConditionalWeakTable<Assembly, string> Reasons = [];

    /// <summary>Load an assembly, once, and what it needs from its own folder; what the context has already stays the one copy.</summary>
    /// <param name="path">The path of the assembly.</param>
    /// <param name="context">Where to load it.</param>
    /// <returns>The assembly.</returns>
    /// <exception cref="BadImageFormatException">It is no assembly.</exception>
    public static Assembly load(string path, AssemblyLoadContext context)
    {
        var full = Path.GetFullPath(path);
        return Loaded.GetOrCreateValue(context).GetOrAdd(full, file => new Lazy<Assembly>(() =>
        {
            var resolver = new AssemblyDependencyResolver(file);
            context.Resolving += (own, name) => resolver.ResolveAssemblyToPath(name) is { } found ? load(found, own) : null;
            return Load(file, context);
        })).Value;
    }

    /// <summary>Say why the calls in an assembly are not seen, or null where they are.</summary>
    internal static string? Reason(Assembly assembly) => Reasons.TryGetValue(assembly, out var reason) ? reason : null;

    private static Assembly Load(string path, AssemblyLoadContext context)
    {
        if (context.Assemblies.FirstOrDefault(own => own.Location == path) is { } present)
        {
            return present;
        }

        try
        {
            using var symbols = new MemoryStream();
            if (Rewrite(path, symbols) is { } code)
            {
                using (code)
                {
                    return context.LoadFromStream(code, symbols.Length > 0 ? symbols : null);
                }
            }
        }
#pragma warning disable CA1031 // The rewriter may fail in any way on code that it does not know; the port runs all the same.
        catch (Exception error)
#pragma warning restore CA1031
        {
            var plain = context.LoadFromAssemblyPath(path);
            Reasons.Add(plain, $"{Path.GetFileName(path)} could not be rewritten: {error.Message.Split('\n')[0].TrimEnd()}");
            return plain;
        }

        return context.LoadFromAssemblyPath(path);
    }

    /// <summary>Rewrite an assembly.</summary>
    /// <returns>Its code, or null where there is nothing to rewrite.</returns>
    private static MemoryStream? Rewrite(string path, MemoryStream symbols)
    {
        using var resolver = new DefaultAssemblyResolver();
        resolver.AddSearchDirectory(Path.GetDirectoryName(path));
        resolver.AddSearchDirectory(Path.GetDirectoryName(typeof(Observed).Assembly.Location));
        resolver.AddSearchDirectory(Path.GetDirectoryName(typeof(object).Assembly.Location));
        using var assembly = Read(path, resolver);
        var changed = false;
        foreach (var module in assembly.Modules)
        {
            var rewriter = new ForwardRewriter(module);
            foreach (var method in module.GetAllTypes().SelectMany(type => type.Methods).Where(method => method.HasBody))
            {
                changed |= rewriter.Rewrite(method);
            }
        }

        if (!changed)
        {
            return null;
        }

        var code = new MemoryStream();
        var known = assembly.MainModule.HasSymbols;
        assembly.Write(code, known ? new WriterParameters { WriteSymbols = true, SymbolStream = symbols, SymbolWriterProvider = new PortablePdbWriterProvider() } : new WriterParameters());
        (code.Position, symbols.Position) = (0, 0);
        return code;
    }

    private static AssemblyDefinition Read(string path, IAssemblyResolver resolver)
    {
        try
        {
            return AssemblyDefinition.ReadAssembly(path, new ReaderParameters
            {
                InMemory = true,
                AssemblyResolver = resolver,
                ReadSymbols = true,
                SymbolReaderProvider = new DefaultSymbolReaderProvider(throwIfNoSymbol: false),
            });
        }
        catch (Exception error) when (error is SymbolsNotFoundException or SymbolsNotMatchingException or NotSupportedException)
        {
            return AssemblyDefinition.ReadAssembly(path, new ReaderParameters { InMemory = true, AssemblyResolver = resolver });
        }
    }
}
