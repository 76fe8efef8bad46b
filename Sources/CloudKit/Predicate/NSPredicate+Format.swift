public import Foundation

extension NSPredicate {
    /// A predicate from a format, as on Apple's systems: `NSPredicate(format: "title BEGINSWITH %@", "Swift")`.
    ///
    /// `%@` stands for a value, `%K` for the name of a field, `%d`, `%f` and their like for numbers. Values are
    /// strings, numbers, truth values, `Date`, `Data`, `CLLocation`, `CKRecord`, its `ID` and `Reference`, and arrays
    /// of these, in Swift's or Foundation's types; an optional without a value is `NULL`.
    ///
    /// A format that cannot be read raises an exception on Apple's systems. Here `formatError` says what is wrong, and
    /// a query with the predicate fails with `CKError.invalidArguments`. The predicate is for queries: evaluated on an
    /// object in memory, it stops the program.
    public convenience init(format predicateFormat: String, _ args: Any?...) {
        self.init(reading: predicateFormat, args)
    }

    /// A predicate from a format with its arguments in an array; see `init(format:_:)`.
    public convenience init(format predicateFormat: String, argumentArray arguments: [Any]?) {
        self.init(reading: predicateFormat, arguments ?? [])
    }

    private convenience init(reading format: String, _ arguments: [Any?]) {
        let result = Result { () throws(FormatError) in try PredicateParser.parse(format, arguments: arguments) }
        self.init(result)
    }

    /// A predicate that is known already; a fault makes one that no query takes.
    convenience init(_ result: Result<PredicateNode, FormatError>) {
        // Foundation's class has no room for the form, and a subclass cannot come out of `NSPredicate(format:)`. So the
        // block keeps it, and gives it to whoever asks with a probe.
        self.init { object, _ in
            guard let probe = object as? PredicateProbe else {
                preconditionFailure(
                    "A predicate made of a format is for queries of CloudKit; on this platform it cannot be evaluated "
                        + "on an object in memory.")
            }
            probe.result = result
            return false
        }
    }

    /// What is wrong with the format that this was made of; nil where nothing is, and for predicates without a format.
    /// Of a compound predicate: the first fault in it.
    public var formatError: FormatError? {
        guard case .failure(.format(let error)) = PredicateReading.read(self) else { return nil }
        return error
    }
}

/// What a predicate of ours answers with its form.
private final class PredicateProbe {
    var result: Result<PredicateNode, NSPredicate.FormatError>?
}

/// The way from Foundation's objects to what they say.
///
/// A block that is not of ours cannot be told apart without calling it: it is called once, with an object that it does
/// not know.
enum PredicateReading {
    /// Why there is nothing to read.
    enum Fault: Error {
        case format(NSPredicate.FormatError)
        /// In words that follow "Invalid predicate: ".
        case unreadable(String)
    }

    /// What `predicate` says: a constant, a format, or a compound of such.
    static func read(_ predicate: NSPredicate) -> Result<PredicateNode, Fault> {
        Result { () throws(Fault) in try node(predicate, depth: 0) }
    }

    private static func node(_ predicate: NSPredicate, depth: Int) throws(Fault) -> PredicateNode {
        guard depth < PredicateLimits.depthMax else {
            throw .unreadable("compound predicates are nested more than \(PredicateLimits.depthMax) deep")
        }
        if let compound = predicate as? NSCompoundPredicate { return try node(compound: compound, depth: depth) }
        for flag in [true, false] where predicate.isEqual(NSPredicate(value: flag)) { return .constant(flag) }
        let probe = PredicateProbe()
        _ = predicate.evaluate(with: probe)
        switch probe.result {
        case .success(let node): return node
        case .failure(let error): throw .format(error)
        case nil:
            throw .unreadable(
                "it is made of a block, which no server can run; make it of a format, NSPredicate(format:)")
        }
    }

    private static func node(compound: NSCompoundPredicate, depth: Int) throws(Fault) -> PredicateNode {
        var members: [PredicateNode] = []
        for member in compound.subpredicates { members.append(try node(member, depth: depth + 1)) }
        switch compound.compoundPredicateType {
        case .not:
            guard members.count == 1 else { throw .unreadable("NOT has \(members.count) predicates, not one") }
            return .not(members[0], .none)
        case .and:
            if members.count < 2 { return members.first ?? .constant(true) }
            return .and(members)
        case .or:
            if members.count < 2 { return members.first ?? .constant(false) }
            return .or(members, .none)
        }
    }
}
