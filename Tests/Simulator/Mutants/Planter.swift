import Foundation

/// Plants mutants into sources, each behind a condition of its own, so that one build holds them all. Which one is in
/// force the environment says.
struct Planter {
    /// The number of the mutant in force; 0 for none. Where it is 0, the process says of each fault when it first comes
    /// to its place; where it is unset it says nothing.
    static let variable = "ZONEKEEPER_PLANTED_BUG"
    /// How such a line begins; the number follows.
    static let reached = "reached "

    /// The planted files, by their paths below `Sources`.
    private(set) var files: [String: String] = [:]

    /// - Parameter read: gives the text of a file below `Sources`.
    init(_ mutants: [Mutant] = Mutant.all, reading read: (String) throws -> String) throws {
        for (place, mutant) in mutants.enumerated() {
            for edit in mutant.edits {
                let text = try files[edit.file] ?? read(edit.file)
                let parts = text.components(separatedBy: edit.original)
                guard parts.count == 2 else {
                    throw Misplaced(number: place + 1, name: mutant.name, edit: edit, count: parts.count - 1)
                }
                let planted = edit.replacement.replacingOccurrences(of: "PLANTED", with: "planted(\(place + 1))")
                files[edit.file] = parts.joined(separator: planted)
            }
        }
    }

    /// Writes the planted files, and what they ask, into a copy of the package.
    /// - Returns: the targets that have faults.
    func write(to package: String) throws -> [String] {
        for (file, text) in files {
            try text.write(toFile: "\(package)/Sources/\(file)", atomically: true, encoding: .utf8)
        }
        let targets = Set(files.keys.map { $0.prefix { $0 != "/" } }).sorted()
        for target in targets {
            try Self.condition.write(
                toFile: "\(package)/Sources/\(target)/Planted.swift", atomically: true, encoding: .utf8)
        }
        return targets.map { String($0) }
    }

    /// The sources changed, and a fault with them.
    struct Misplaced: Error, CustomStringConvertible {
        var number: Int
        var name: String
        var edit: Mutant.Edit
        /// How often the original is there.
        var count: Int

        var description: String {
            """
            fault \(number), \(name): \(edit.file) has this \(count) times, not once:
            \(edit.original)
            Mend Tests/Simulator/Mutants.
            """
        }
    }

    private static let condition = """
        import Foundation

        private let number = ProcessInfo.processInfo.environment["\(variable)"].flatMap { Int($0) }
        // Simulations run on one thread.
        private nonisolated(unsafe) var reached = [Bool](repeating: false, count: 1_000)

        /// Whether a fault is the one in force.
        func planted(_ fault: Int) -> Bool {
            if number == 0, !reached[fault] {
                reached[fault] = true
                FileHandle.standardOutput.write(Data("\(Self.reached)\\(fault)\\n".utf8))
            }
            return fault == number
        }

        """
}
