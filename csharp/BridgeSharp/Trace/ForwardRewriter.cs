using Mono.Cecil;
using Mono.Cecil.Cil;
using Mono.Cecil.Rocks;

namespace BridgeSharp.Trace;

/// <summary>Puts calls of <see cref="Observed"/> around the calls of <c>forward</c> in a module's code.</summary>
/// <remarks>
/// Arguments and result are kept in variables of their own, so that what else is on the stack, branches, generic types,
/// iterators and asynchronous methods stay as they are. <c>base.forward</c> is part of the call that is under way.
/// </remarks>
/// <param name="module">The module.</param>
internal sealed class ForwardRewriter(ModuleDefinition module)
{
    private readonly MethodReference enter = Import(module, nameof(Observed.enter));
    private readonly MethodReference leave = Import(module, nameof(Observed.leave));
    private readonly MethodReference wrap = Import(module, nameof(Observed.wrap));

    /// <summary>Rewrite a method.</summary>
    /// <returns>Whether it has such a call.</returns>
    public bool Rewrite(MethodDefinition method)
    {
        (Instruction Instruction, string? Site)[] found =
            [.. method.Body.Instructions.Where(IsForward).Select(instruction => (instruction, Site(method, instruction)))];
        if (found.Length == 0)
        {
            return false;
        }

        method.Body.SimplifyMacros();
        foreach (var (instruction, site) in found)
        {
            if (instruction.OpCode == OpCodes.Callvirt)
            {
                Surround(method, instruction, site);
            }
            else if (instruction.Next is { OpCode.Code: Code.Newobj, Operand: MethodReference constructor })
            {
                var own = new GenericInstanceMethod(wrap) { GenericArguments = { constructor.DeclaringType } };
                Insert(method, instruction.Next, [Text(site), Instruction.Create(OpCodes.Call, own)]);
            }
        }

        method.Body.OptimizeMacros();
        return true;
    }

    private static MethodReference Import(ModuleDefinition module, string name) => module.ImportReference(typeof(Observed).GetMethod(name));

    private static bool IsForward(Instruction instruction)
        => instruction.OpCode.Code is Code.Callvirt or Code.Ldvirtftn or Code.Ldftn
            && instruction.Operand is MethodReference { Name: "forward", HasThis: true, Parameters.Count: > 0 } method
            && method.ReturnType is not ByReferenceType && method.ReturnType.MetadataType != MetadataType.Void;

    private static string? Site(MethodDefinition method, Instruction instruction)
        => method.DebugInformation.SequencePoints.LastOrDefault(point => point.Offset <= instruction.Offset && !point.IsHidden) is { } point
            ? FormattableString.Invariant($"{point.Document.Url}:{point.StartLine}").Replace('\\', '/')
            : null;

    private static Instruction Text(string? text) => text is null ? Instruction.Create(OpCodes.Ldnull) : Instruction.Create(OpCodes.Ldstr, text);

    private static void Insert(MethodDefinition method, Instruction after, IEnumerable<Instruction> instructions)
    {
        var il = method.Body.GetILProcessor();
        foreach (var instruction in instructions)
        {
            il.InsertAfter(after, instruction);
            after = instruction;
        }
    }

    private static VariableDefinition Variable(MethodDefinition method, TypeReference type)
    {
        var variable = new VariableDefinition(type);
        method.Body.Variables.Add(variable);
        return variable;
    }

    /// <summary>Take a prefix of a call away; branches to it go on to the call.</summary>
    private static TypeReference? TakePrefixes(Instruction call)
    {
        TypeReference? constrained = null;
        for (var prefix = call.Previous; prefix is { OpCode.OpCodeType: OpCodeType.Prefix }; prefix = prefix.Previous)
        {
            constrained = prefix.OpCode == OpCodes.Constrained ? (TypeReference)prefix.Operand : constrained;
            (prefix.OpCode, prefix.Operand) = (OpCodes.Nop, null);
        }

        return constrained;
    }

    private void Surround(MethodDefinition method, Instruction call, string? site)
    {
        var callee = (MethodReference)call.Operand;
        var constrained = TakePrefixes(call);
        var layer = Variable(method, constrained is null ? callee.DeclaringType : new ByReferenceType(constrained));
        VariableDefinition[] arguments = [.. callee.Parameters.Select(parameter => Variable(method, Closed.Type(parameter.ParameterType, callee)))];
        var result = Variable(method, Closed.Type(callee.ReturnType, callee));
        Instruction[] shown = [.. Load(layer, constrained), Caller(method)];
        Instruction[] shownAgain = [.. Load(layer, constrained), Caller(method)];
        Instruction[] prefix = constrained is null ? [] : [Instruction.Create(OpCodes.Constrained, constrained)];
        Instruction[] stores = [.. arguments.Reverse().Append(layer).Select(variable => Instruction.Create(OpCodes.Stloc, variable))];
        Insert(method, call,
        [
            .. stores.Skip(1), .. shown, .. Array(arguments), Text(site), Instruction.Create(OpCodes.Call, enter),
            .. arguments.Prepend(layer).Select(variable => Instruction.Create(OpCodes.Ldloc, variable)), .. prefix, Instruction.Create(OpCodes.Callvirt, callee),
            Instruction.Create(OpCodes.Stloc, result), .. shownAgain, Instruction.Create(OpCodes.Ldloc, result),
            Instruction.Create(OpCodes.Box, result.VariableType), Instruction.Create(OpCodes.Call, leave), Instruction.Create(OpCodes.Unbox_Any, result.VariableType),
        ]);

        // Branches go to the call, so it stays as the first of these.
        (call.OpCode, call.Operand) = (stores[0].OpCode, stores[0].Operand);
    }

    private static Instruction[] Load(VariableDefinition layer, TypeReference? constrained)
    {
        var load = Instruction.Create(OpCodes.Ldloc, layer);
        return constrained is null ? [load] : [load, Instruction.Create(OpCodes.Ldobj, constrained), Instruction.Create(OpCodes.Box, constrained)];
    }

    private static Instruction Caller(MethodDefinition method)
        => method.HasThis && !method.DeclaringType.IsValueType
            ? Instruction.Create(OpCodes.Ldarg, method.Body.ThisParameter)
            : Instruction.Create(OpCodes.Ldnull);

    private IEnumerable<Instruction> Array(VariableDefinition[] arguments)
    {
        yield return Instruction.Create(OpCodes.Ldc_I4, arguments.Length);
        yield return Instruction.Create(OpCodes.Newarr, module.TypeSystem.Object);
        foreach (var (index, argument) in arguments.Index().Where(argument => !Closed.OnlyOnStack(argument.Item.VariableType)))
        {
            yield return Instruction.Create(OpCodes.Dup);
            yield return Instruction.Create(OpCodes.Ldc_I4, index);
            yield return Instruction.Create(OpCodes.Ldloc, argument);
            yield return Instruction.Create(OpCodes.Box, argument.VariableType);
            yield return Instruction.Create(OpCodes.Stelem_Ref);
        }
    }
}
