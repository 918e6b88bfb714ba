// Messages about an unknown command or option, with the command, option or model's parameter that
// was probably meant. Shared by the command lines of dlc and dlc-run.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace dlc {

/// Parameters of the model in a .dl file; none of what cannot be read. A look at the text alone: an
/// error in the model is another matter.
inline std::vector<std::string> parametersOf(const std::string &file) {
  std::ostringstream text;
  if (file.ends_with(".dl"))
    text << std::ifstream(file).rdbuf();
  std::string content = text.str();
  std::vector<std::string> names;
  static const std::regex head("(^|\n)model\\s+\\w+\\s*\\(([^{]*)\\{"), name("(\\w+)\\s*=(?!=)");
  if (std::smatch match; std::regex_search(content, match, head)) {
    std::string parameters = match[2].str();
    for (std::sregex_iterator it(parameters.begin(), parameters.end(), name), end; it != end; ++it)
      names.push_back((*it)[1].str());
  }
  return names;
}

/// Letters to add, drop or change to get from one word to the other (Levenshtein).
inline size_t editDistance(const std::string &from, const std::string &to) {
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= to.size(); ++j) {
      size_t changed = diagonal + (from[i - 1] != to[j - 1]);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// The word that is closest to a name, the first one of several; empty if all are other words.
inline std::string nearest(const std::vector<std::string> &words, const std::string &name) {
  std::string found;
  size_t least = name.size() / 3 + 2; // a third of the letters may be wrong, and one more
  for (const std::string &word : words)
    if (size_t distance = editDistance(name, word); distance < least) {
      found = word;
      least = distance;
    }
  return found;
}

inline std::vector<std::string> optionNames(const std::vector<const CLI::App *> &commands) {
  std::vector<std::string> names;
  for (const CLI::App *command : commands)
    for (const CLI::Option *option : command->get_options())
      if (!option->get_group().empty()) // a hidden one
        names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  return names;
}

/// The message on what stands where `app` wants one of its commands; empty if that is one, or none.
inline std::string unknownCommand(const CLI::App &app) {
  std::vector<std::string> given = app.remaining(), commands;
  if (!app.get_subcommands().empty() || given.empty())
    return "";
  for (const CLI::App *command : app.get_subcommands([](const CLI::App *) { return true; }))
    commands.push_back(command->get_name());
  for (const std::string &word : given)
    if (std::string meant = nearest(commands, word); !word.starts_with("-") && !meant.empty())
      return "there is no command '" + word + "'; did you mean " + meant + "?";
  if (given.front().starts_with("-"))
    return "";
  std::string known;
  for (const std::string &command : commands)
    known += (known.empty() ? "" : ", ") + command;
  return "there is no command '" + given.front() + "'; there are " + known;
}

/// The message on the first option in `remaining`, what `app` could not place of its arguments;
/// empty if none of that is an option. `model`: FILE of the command line.
inline std::string unknownOption(const CLI::App &app, const std::string &model) {
  std::vector<std::string> remaining = app.remaining(/*recurse=*/true);
  auto given = std::find_if(remaining.begin(), remaining.end(),
                            [](const std::string &text) { return text.starts_with("--"); });
  if (given == remaining.end())
    return "";
  size_t equals = given->find('=');
  std::string name = given->substr(2, equals == std::string::npos ? equals : equals - 2);
  std::string value = equals == std::string::npos ? "" : given->substr(equals + 1);
  std::string text = "there is no option " + *given;
  // The option's value may have been taken for FILE, and FILE be left over.
  auto file = std::find_if(remaining.begin(), remaining.end(),
                           [](const std::string &other) { return other.ends_with(".dl"); });
  std::vector<std::string> parameters = parametersOf(file == remaining.end() ? model : *file);
  if (std::find(parameters.begin(), parameters.end(), name) != parameters.end()) {
    if (value.empty() && file != remaining.end())
      value = model;
    if (value.empty() && given + 1 != remaining.end() && !given[1].starts_with("-"))
      value = given[1];
    if (value.empty())
      value = "VALUE";
    return text + "; did you mean --set " + name + "=" + value + "?";
  }
  std::vector<const CLI::App *> commands = {&app};
  for (const CLI::App *command : app.get_subcommands())
    commands.push_back(command);
  std::string meant = nearest(optionNames(commands), name);
  return meant.empty() ? text : text + "; did you mean --" + meant + "?";
}

} // namespace dlc
