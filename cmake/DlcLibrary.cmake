# How a directory becomes a library, a module, a program or a test executable.
#
# Sources are globbed (with CONFIGURE_DEPENDS) rather than listed: many people add files at the same
# time, and a list would be the one file they all edit. A directory without sources gives no target,
# and links name targets that need not exist, so directories can be filled in any order.
include_guard(GLOBAL)

# What all generated headers hang on: schemas for the runtime, tablegen output for the compiler.
add_custom_target(dlc-schema ALL)
add_custom_target(dlc-tablegen ALL)

function(dlc_glob OUT DIR)
  file(GLOB sources CONFIGURE_DEPENDS ${DIR}/*.cpp)
  set(${OUT} ${sources} PARENT_SCOPE)
endfunction()

# Flags, include roots and links of one of our targets. MLIR marks compiler code: it is compiled without
# exceptions, as LLVM is. EXCEPTIONS is for the program that also catches the runtime's.
function(dlc_configure_target NAME)
  cmake_parse_arguments(ARG "MLIR;EXCEPTIONS" "" "ROOMS;LINK" ${ARGN})
  get_target_property(type ${NAME} TYPE)
  target_include_directories(${NAME} PUBLIC ${DLC_SOURCE_ROOT})
  # The generated headers are not ours to keep free of warnings.
  target_include_directories(${NAME} SYSTEM PUBLIC ${CMAKE_BINARY_DIR})
  target_compile_options(${NAME} PRIVATE -Wall -Wextra -Werror)
  add_dependencies(${NAME} dlc-schema)
  if(ARG_MLIR)
    target_link_libraries(${NAME} PUBLIC dlcMlirOptions)
    # Patterns and interface methods have fixed signatures; few use every parameter.
    target_compile_options(${NAME} PRIVATE -Wno-unused-parameter)
    add_dependencies(${NAME} dlc-tablegen)
    if(NOT ARG_EXCEPTIONS)
      target_compile_options(${NAME} PRIVATE -fno-exceptions)
      if(TARGET dlcMlirPch)
        dlc_use_pch(${NAME})
      endif()
    endif()
  endif()
  set(scope PUBLIC)
  if(type MATCHES "EXECUTABLE|MODULE")
    set(scope PRIVATE)
  endif()
  foreach(item IN LISTS ARG_LINK)
    if(item MATCHES "^dlc")
      set(item $<TARGET_NAME_IF_EXISTS:${item}>)
    endif()
    target_link_libraries(${NAME} ${scope} ${item})
  endforeach()
endfunction()

# dlc_add_library(NAME [MLIR] [ROOMS directory...] [LINK item...]): static library of the sources of
# this directory and of those directories below it.
function(dlc_add_library NAME)
  cmake_parse_arguments(ARG "MLIR" "" "ROOMS;LINK" ${ARGN})
  set(sources "")
  foreach(room IN ITEMS . LISTS ARG_ROOMS)
    dlc_glob(more ${CMAKE_CURRENT_SOURCE_DIR}/${room})
    list(APPEND sources ${more})
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_library(${NAME} STATIC ${sources})
  dlc_configure_target(${NAME} ${ARGN})
endfunction()

# dlc_add_module(NAME [OBJECTS_OF LIBRARY] [LINK item...]): shared object for dlopen, lib/NAME.so, of
# this directory's sources or of the objects of an existing static library.
function(dlc_add_module NAME)
  cmake_parse_arguments(ARG "" "OBJECTS_OF" "" ${ARGN})
  if(ARG_OBJECTS_OF)
    if(NOT TARGET ${ARG_OBJECTS_OF})
      return()
    endif()
    set(sources $<TARGET_OBJECTS:${ARG_OBJECTS_OF}>)
  else()
    dlc_glob(sources ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(${NAME} MODULE ${sources})
  set_target_properties(${NAME} PROPERTIES PREFIX "" LINKER_LANGUAGE CXX)
  dlc_configure_target(${NAME} ${ARG_UNPARSED_ARGUMENTS})
endfunction()

# dlc_add_program(NAME [MLIR] [EXCEPTIONS] [LINK item...]): bin/NAME of this directory's sources.
function(dlc_add_program NAME)
  dlc_glob(sources ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT sources)
    return()
  endif()
  add_executable(${NAME} ${sources})
  dlc_configure_target(${NAME} ${ARGN})
  # Libraries that scripts/bundle has put beside them come first, also for libraries and modules
  # (which DT_RUNPATH, the newer tag, would not serve). In a build there are none.
  set_target_properties(${NAME} PROPERTIES BUILD_RPATH "$ORIGIN/../lib")
  target_link_options(${NAME} PRIVATE LINKER:--disable-new-dtags)
  set_property(GLOBAL APPEND PROPERTY DLC_PROGRAMS ${NAME})
endfunction()

# dlc_embed_tables(DIRECTORY OUT): the JSON files of a directory as rows {name, json} in OUT below the build directory,
# so that a module needs no data files.
function(dlc_embed_tables DIR OUT)
  file(GLOB tables CONFIGURE_DEPENDS ${DIR}/*.json)
  set(rows "")
  foreach(table IN LISTS tables)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
    get_filename_component(name ${table} NAME_WE)
    file(READ ${table} json)
    string(APPEND rows "{\"${name}\", R\"json(${json})json\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${OUT} CONTENT "${rows}" @ONLY)
endfunction()

# dlc_add_schema(FILE.fbs [flag...]): "runtime/AREA/FILE_generated.h" below the build directory.
function(dlc_add_schema FBS)
  get_filename_component(stem ${FBS} NAME_WE)
  get_filename_component(folder ${FBS} DIRECTORY)
  file(RELATIVE_PATH dir ${DLC_SOURCE_ROOT} ${folder})
  set(out ${CMAKE_BINARY_DIR}/${dir}/${stem}_generated.h)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${DLC_FLATC} --cpp --cpp-std c++17 --scoped-enums --gen-object-api --gen-name-strings
            ${ARGN} -o ${CMAKE_BINARY_DIR}/${dir} ${FBS}
    DEPENDS ${FBS}
    COMMENT "Generating ${dir}/${stem}_generated.h")
  string(REPLACE / - target dlc-schema-${dir}-${stem})
  add_custom_target(${target} DEPENDS ${out})
  add_dependencies(dlc-schema ${target})
endfunction()
