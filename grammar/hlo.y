/* The grammar of HLO text, LALR(1) without conflicts. Source: reference text 2 to 7; 11.2 and 11.3 say what the token filter
 * (text/filter.c) has decided before a token comes here. Rules only recognise; what they mean is in src/text/parse_*.c. */
%code requires {
#include "text/parse_int.h"
typedef Loc HLO_LTYPE;
}

%define api.pure full
%define api.prefix {hlo_}
%define api.location.type {Loc}
%define parse.error custom

%expect 0
%locations
%param {Parser *p}

%union {
    const char   *name;   /* interned */
    Loc           text;   /* a token whose text is looked at later */
    Number        num;
    int64_t       i;
    Type          type; /* members have 16 bytes at most: the parser copies a value at every step */
    const Shape  *shape;
    ShapeVec     *shapes;
    DimVec       *dims;
    LayoutDraft  *layout;
    IntVec       *ints;
    Ints          list;
    IntsVec      *lists;
    LocNames     *names;
    Rhs          *rhs;
    Comp         *comp;
    CompVec      *comps;
    SliceVec     *slices;
    WindowDraft  *window;
    AliasVec     *alias;
    SideVec      *sides;
    PairVec      *pairs;
    const Iota   *iota;
    GroupsDraft  *groups;
    MeshDraft    *mesh;
    AxisVec      *axes;
    const AxisDraft *axis;
    NamedDimVec  *named_dims;
    ShardDraft   *shard;
    const Sharding *sharding;
    ShardVec     *shardings;
    OriginVec    *origin;
    const OriginArray *array;
    Accuracy     *accuracy;
    StatVec      *stats;
    DebugVec     *debug;
    DebugAttr    *debug_attr;
    MetaVec      *metas;
    const Metadata *meta;
    TypedVec     *typed;
    AttrLiteral   tlit;
}

%code {
#include <stdio.h>

static int  hlo_lex(HLO_STYPE *v, HLO_LTYPE *loc, Parser *p);
static void hlo_error(HLO_LTYPE *loc, Parser *p, const char *msg);

/* A value too large for the stack of the parser. */
#define KEPT(T, ...) ((const T *)arena_copy(p->tmp, &(T){__VA_ARGS__}, sizeof(T)))

#define YYMAXDEPTH (24 * MAX_NESTING)
#define YYLLOC_DEFAULT(to, rhs, n)                                                                                              \
    (to) = (n) ? loc_span(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n)) : ((Loc){YYRHSLOC(rhs, 0).off + YYRHSLOC(rhs, 0).len, 0})
}

/* What the input is; the first token is always one of these. */
%token START_MODULE "start of a module" START_COMPS "start of computations" START_INST "start of an instruction"
%token START_BODY "rest of a computation" START_MORE "more computations"

%token <name> T_NAME "name" T_IDENT "word" T_STRING "string"
%token <i>    T_INT "integer"
%token <num>  T_DECIMAL "number"
%token        T_NEG_INF "-inf"
%token <text> T_DIM_LABELS "dimension labels" T_DXD "sizes" T_PAD "padding"
%token <type> T_TYPE "element type"
%token <shape> T_ARRAY "array type"
%token        T_ARROW "->" T_LEQ "<=" T_DOTS "..." T_LAYOUT "{ of a layout" T_DEVICE_IDS ", device_ids="

/* Words with a meaning of their own that are also names. */
%token T_DENSE "literal"
%token <list> T_INTS "integers in braces"
%token <meta> T_METADATA "metadata"
%token <name> W_B "b" W_CONSTANT "constant" W_PARAMETER "parameter" W_MESH "mesh" W_SINGLE_DEVICE "single_device"
%token <name> W_MAXIMAL_MESH "maximal_mesh" W_SYNTHETIC_CALL "synthetic_call"
%token <name> W_D "D" W_L "L" W_E "E" W_S "S" W_SC "SC" W_P "P" W_M "M"
%token <name> K_T "T"

%token K_MODULE "HloModule" K_ENTRY "ENTRY" K_ROOT "ROOT" K_FILE_NAMES "FileNames" K_FUNCTION_NAMES "FunctionNames"
%token K_FILE_LOCATIONS "FileLocations" K_STACK_FRAMES "StackFrames" K_TRUE "true" K_FALSE "false" K_INF "inf"
%token K_MAXIMAL "maximal" K_REPLICATED "replicated" K_MANUAL "manual" K_LAST_TILE_DIM_REPLICATE "last_tile_dim_replicate"
%token K_SHARD_AS "shard_as" K_SHARD_LIKE "shard_like" K_UNKNOWN "unknown" K_UNREDUCED "unreduced"

/* Attributes of instructions, one token for each class of attrs.def. */
%token <name> A_INT "attribute=" A_NUMBER A_BOOL A_WORD A_STRING A_RAW A_INTS A_LISTS A_INTS_OR_LISTS A_BOOLS A_SLICES A_PADDING
%token <name> A_WINDOW A_DIM_LABELS A_PRECISION A_SHAPE A_SHAPES A_LITERAL A_ALIASING A_GROUPS A_SPARSITY A_SCALING A_DOMAIN A_SHARDING
%token <name> A_KEY_VALUES A_STATISTICS A_ACCURACY A_ORIGIN A_METADATA A_INSTS A_COMP A_COMPS
%token <name> A_KIND "kind="

/* Names inside the braces of attributes. */
%token <name> S_STRING S_INT S_INTS S_DXD S_PAD "pad=" S_NUMBER S_TOLERANCE "tolerance=" S_SIDE "lhs=" S_SHARDING "entry="
%token <name> S_DEVICES "devices=" S_LAST_TILE_DIMS "last_tile_dims=" S_AXES "replicated=" S_UNREDUCED "unreduced="
%token <name> S_LOG_MODE "log_mode=" S_BOOL "partitioned="

/* Header and computations. */
%token <name> H_INT H_BOOL H_BOOLS H_ALIAS "input_output_alias=" H_DONOR "buffer_donor=" H_LAYOUT "entry_computation_layout="
%token <name> H_ORIGINS "origin_recovery_table=" H_DEBUG "debug_attributes=" C_THREAD "execution_thread="

%token <name> A_OTHER "unknown attribute" T_KEY "key="

%type <name>   name word plain_word own_word mesh_single string_opt table_name
%type <i>      bool bool_item dlt int_or_star
%type <text>   inst_head /* where ROOT stands, LOC_NONE: not the root */
%type <num>    number value
%type <shape>  type array_type written_array
%type <shapes> types type_list type_list_trailing
%type <dims>   dims dim_list
%type <layout> layout_opt layout_draft
%type <ints>   int_list int_list_opt bool_list colon_list tile_item_list dxd axis_ids subgroups subgroup_list device_list
%type <list>   ints shape_index iota_dims bools
%type <lists>  lists lists_opt
%type <names>  word_list names words_opt
%type <rhs>    rhs typed_head untyped_head constant_head parameter_head typed_rhs
%type <comp>   callee
%type <comps>  callees callee_list
%type <slices> ranges range_list
%type <window> window_fields
%type <alias>  aliases alias_items
%type <sides>  sides
%type <pairs>  side_items
%type <iota>   iota
%type <groups> groups
%type <mesh>   mesh mesh_axes mesh_axis_list
%type <axes>   axes axis_list
%type <axis>   axis
%type <named_dims> named_dims named_dim_list
%type <shard>  shard_items named named_attrs
%type <sharding> sharding shard_single
%type <shardings> shard_list
%type <origin> origin_items
%type <array>  origin_array
%type <accuracy> accuracy tolerances tolerance_list
%type <stats>  stats stat_list
%type <stats>  key_values key_value_list
%type <debug>  debug_list debugs
%type <debug_attr> debug debug_fields
%type <metas>  metas meta_list metas_opt
%type <meta>   metadata
%type <typed>  typed_list
%type <tlit>   typed_literal

%%

input:
      START_MODULE module_line header_attrs stack_tables comps
    | START_COMPS comps
    | START_INST { single_begin(p); } single
    | START_BODY body_end comps_opt
    | START_BODY insts body_end comps_opt
    | START_MORE comps_opt
    ;

module_line: K_MODULE name { module_begin(p, $2); } ;

/* ---- header ---- */

header_attrs: %empty | header_attrs ',' header_attr ;
header_attr:
      H_INT T_INT                               { header_int(p, $1, @1, $2); }
    | H_BOOL bool                               { header_bool(p, $1, @1, $2); }
    | H_BOOLS bools                             { header_bools(p, $1, @1, $2); }
    | H_ALIAS '{' alias_table '}'               { header_seen(p, $1, @1); p->alias_loc = @1; }
    | H_DONOR '{' donor_table '}'               { header_seen(p, $1, @1); }
    | H_LAYOUT '{' '(' type_list_trailing ')' T_ARROW type '}' { header_layout(p, $1, @1, $4, $7); }
    | A_KEY_VALUES key_values                   { header_key_values(p, $1, @1, $2); }
    | A_RAW T_STRING                            { header_config(p, $1, @1, $2); }
    | H_ORIGINS '{' recoveries '}'              { header_origins(p, $1, @1); }
    | H_DEBUG '{' debug_table '}'               { header_debug(p, $1, @1); }
    ;

bool: K_TRUE { $$ = 1; } | K_FALSE { $$ = 0; } ;
bool_item: bool ;
bool_list:
      bool_item                                 { $$ = int_list(p, NULL, $1); }
    | bool_list ',' bool_item                   { $$ = int_list(p, $1, $3); }
    ;
bools:
      bool                                      { $$ = list_ints(p, int_list(p, NULL, $1)); }
    | '{' '}'                                   { $$ = (Ints){NULL, 0}; }
    | '{' bool_list '}'                         { $$ = list_ints(p, $2); }
    ;

shape_index:
      '{' '}'                                   { $$ = (Ints){NULL, 0}; }
    | '{' int_list '}'                          { $$ = list_ints(p, $2); }
    | '{' int_list ',' '}'                      { $$ = list_ints(p, $2); }
    ;

alias_table: %empty | alias_rows | alias_rows ',' ;
alias_rows: alias_row | alias_rows ',' alias_row ;
alias_row:
      shape_index ':' '(' T_INT ',' shape_index ')'           { header_alias(p, @$, $1, $4, $6, NULL, @6); }
    | shape_index ':' '(' T_INT ',' shape_index ',' word ')'  { header_alias(p, @$, $1, $4, $6, $8, @8); }
    ;

donor_table: %empty | donor_rows | donor_rows ',' ;
donor_rows: donor_row | donor_rows ',' donor_row ;
donor_row: '(' T_INT ',' shape_index ')'        { header_donor(p, @$, $2, $4); } ;

recoveries: %empty | recoveries recovery ;
recovery: origin_array ':' origin_array string_opt { header_recovery(p, *$1, *$3, $4, @4); } ;
string_opt: %empty { $$ = NULL; } | ',' T_STRING { $$ = $2; } ;

debug_table: %empty | debug_rows ;
debug_rows: debug_row | debug_rows ',' debug_row ;
debug_row: origin_array ':' debug_list          { header_debug_row(p, *$1, $3); } ;
debug_list:
      debug                                     { $$ = debug_add(p, NULL, $1); }
    | '(' ')'                                   { $$ = NULL; }
    | '(' debugs ')'                            { $$ = $2; }
    ;
debugs:
      debug                                     { $$ = debug_add(p, NULL, $1); }
    | debugs ',' debug                          { $$ = debug_add(p, $1, $3); }
    ;
debug: '{' debug_fields '}'                     { $$ = $2; } ;
debug_fields:
      debug_start debug_field                   { $$ = p->debug; }
    | debug_fields ',' debug_field
    ;
debug_start: %empty                             { debug_begin(p); } ;
debug_field:
      S_LOG_MODE word                           { debug_log_mode(p, $2, @2); }
    | S_INT T_INT                               { debug_int(p, $1, @1, $2); }
    | S_BOOL bool                               { p->debug->partitioned = $2; }
    ;

stack_tables:
      %empty
    | K_FILE_NAMES file_names K_FUNCTION_NAMES function_names K_FILE_LOCATIONS file_locations K_STACK_FRAMES stack_frames
    ;
file_names: %empty | file_names T_INT table_name        { vec_push(p->tmp, &p->files, $3); } ;
function_names: %empty | function_names T_INT table_name { vec_push(p->tmp, &p->functions, $3); } ;
table_name: %empty { $$ = intern(p->strings, "", 0); } | T_STRING ; /* XLA's parser does not mind when none is there */
file_locations: %empty | file_locations T_INT subattrs  { stack_location(p, @3); } ;
stack_frames: %empty | stack_frames T_INT subattrs      { stack_frame(p, @3); } ;

/* ---- computations ---- */

comps_opt: %empty | comps ;
comps: comp | comps comp ;
comp: comp_head signature '{' { comp_open(p); } insts body_end ;
comp_head:
      name                                      { comp_begin(p, false, @1, $1, @1); }
    | K_ENTRY name                              { comp_begin(p, true, @1, $2, @2); }
    ;
signature: %empty | '(' params ')' T_ARROW type { comp_result(p, $5, @5); } ;
params: %empty | param_list ;
param_list: param | param_list ',' param ;
param: name type ;
body_end: '}' { p->scope->close = @1; } comp_attrs { comp_end(p); } ;
comp_attrs: %empty | comp_attrs ',' comp_attr ;
comp_attr:
      C_THREAD T_STRING                         { scope_thread(p, @1, $2); }
    | A_RAW T_STRING                            { scope_config(p, @1, $2); }
    ;

name: T_NAME | word ;
word: plain_word | W_B | W_CONSTANT | W_PARAMETER ;
plain_word: T_IDENT | own_word ;
own_word:
      W_MESH | W_SINGLE_DEVICE | W_MAXIMAL_MESH | W_SYNTHETIC_CALL | W_D | W_L | W_E | W_S | W_SC | W_P | W_M ;

callee:
      name                                      { $$ = comp_find(p, $1, @1); }
    | '{' { comp_open_inline(p, @1); } insts '}' { p->scope->close = @4; $$ = comp_end(p); }
    ;

/* ---- instructions ---- */

insts: inst | insts inst ;
inst: inst_head rhs attrs                       { inst_end(p, $1, $2); } ;
inst_head:
      T_NAME '='                                { inst_pending(p, $1, @1); $$ = LOC_NONE; }
    | word '='                                  { inst_pending(p, $1, @1); $$ = LOC_NONE; }
    | K_ROOT name '='                           { inst_pending(p, $2, @2); $$ = @1; }
    ;

single:
      typed_rhs attrs                           { single_end(p, $1, @1); }
    | single_name rhs attrs                     { single_end(p, $2, @2); }
    | K_ROOT single_name rhs attrs              { single_end(p, $3, @3); }
    ;
single_name: name '='                           { inst_pending(p, $1, @1); } ;

rhs:
      typed_head '(' operands ')'               { $$ = rhs_operands(p, $1, @2); }
    | untyped_head '(' operands ')'             { $$ = rhs_operands(p, $1, @2); }
    | constant_head '(' literal_or_comma ')'    { $$ = rhs_literal(p, $1, @2, @3); }
    | parameter_head '(' T_INT ')'              { $$ = rhs_number(p, $1, $3, @3); }
    ;
typed_rhs:
      typed_head '(' operands ')'               { $$ = rhs_operands(p, $1, @2); }
    | type W_CONSTANT { $<rhs>$ = rhs_begin(p, $1, $2, @2); } '(' literal_or_comma ')' { $$ = rhs_literal(p, $<rhs>3, @4, @5); }
    | type W_PARAMETER { $<rhs>$ = rhs_begin(p, $1, $2, @2); } '(' T_INT ')' { $$ = rhs_number(p, $<rhs>3, $5, @5); }
    ;
typed_head:
      type T_IDENT                              { $$ = rhs_begin(p, $1, $2, @2); }
    | type own_word                             { $$ = rhs_begin(p, $1, $2, @2); }
    ;
untyped_head: plain_word                       { $$ = rhs_begin(p, NULL, $1, @1); } ;
constant_head:
      W_CONSTANT                                { $$ = rhs_begin(p, NULL, $1, @1); }
    | type W_CONSTANT                           { $$ = rhs_begin(p, $1, $2, @2); }
    ;
parameter_head:
      W_PARAMETER                               { $$ = rhs_begin(p, NULL, $1, @1); }
    | type W_PARAMETER                          { $$ = rhs_begin(p, $1, $2, @2); }
    ;

operands: operand | operands ',' operand ;
operand:
      %empty
    | T_TYPE                                    /* without brackets: dropped, as in XLA */
    | type                                      { operand_type_only(p, $1, @1); }
    | T_NAME                                    { operand_name(p, NULL, $1, @1, NULL); }
    | word                                      { operand_word(p, NULL, $1, @1); }
    | name indices                              { operand_name(p, NULL, $1, @$, &p->indices); }
    | type T_NAME                               { operand_name(p, $1, $2, @$, NULL); }
    | type word                                 { operand_word(p, $1, $2, @$); }
    | type name indices                         { operand_name(p, $1, $2, @$, &p->indices); }
    | rhs                                       { operand_nested(p, $1, @1); }
    ;
indices:
      '#' T_INT                                 { p->indices.n = 0; vec_push(p->tmp, &p->indices, $2); }
    | indices '#' T_INT                         { vec_push(p->tmp, &p->indices, $3); }
    ;

/* ---- types ---- */

type:
      T_ARRAY
    | written_array
    | '(' types ')'                             { $$ = type_tuple(p, $2, @$); }
    | W_B '(' type ')'                          { $$ = type_buffer(p, $3, @3); }
    ;
array_type: T_ARRAY | written_array ;
written_array:
      T_TYPE '[' dims ']' layout_opt            { $$ = type_array(p, $1, $3, $5, @$, @5); }
    ;
types: %empty { $$ = NULL; } | type_list ;
type_list:
      type                                      { $$ = shape_list(p, NULL, $1); }
    | type_list ',' type                        { $$ = shape_list(p, $1, $3); }
    ;
type_list_trailing: %empty { $$ = NULL; } | type_list | type_list ',' ;
dims: %empty { $$ = NULL; } | dim_list ;
dim_list:
      dim_start dim                             { $$ = &p->dims; }
    | dim_list ',' dim
    ;
dim_start: %empty                               { dims_begin(p); } ;
dim:
      T_INT                                     { dim_add(p, $1, false, @1); }
    | T_LEQ T_INT                               { dim_add(p, $2, true, @2); }
    | '?'                                       { dim_add(p, DIM_UNBOUNDED, true, @1); }
    ;
layout_opt: %empty { $$ = NULL; } | T_LAYOUT layout_draft '}' { $$ = $2; } ;
layout_draft:
      int_list_opt                              { $$ = layout_begin(p, $1); }
    | int_list_opt ':' { $<layout>$ = layout_begin(p, $1); } layout_fields { $$ = $<layout>3; }
    ;
close: ')' | %empty ;                           /* XLA does not miss the parenthesis at the end of a field */
layout_fields: %empty | layout_fields layout_field ;
layout_field:
      W_D '(' ')'                               { layout_field(p, FIELD_D, @1); }
    | W_D '(' dlt_list close                    { layout_field(p, FIELD_D, @1); }
    | K_T { layout_field(p, FIELD_T, @1); } tiles
    | W_L '(' T_INT close                       { layout_int(p, FIELD_L, @1, $3, @3); }
    | '#' '(' T_TYPE close                      { layout_type(p, FIELD_INDEX, @1, $3); }
    | '*' '(' T_TYPE close                      { layout_type(p, FIELD_POINTER, @1, $3); }
    | W_E '(' T_INT close                       { layout_int(p, FIELD_E, @1, $3, @3); }
    | W_S '(' T_INT close                       { layout_int(p, FIELD_S, @1, $3, @3); }
    | W_SC { layout_field(p, FIELD_SC, @1); } splits
    | W_P '(' type close                        { layout_field(p, FIELD_P, @1); }
    | W_M '(' T_INT close                       { layout_int(p, FIELD_M, @1, $3, @3); }
    ;
dlt_list: dlt | dlt_list ',' dlt ;
dlt: word dlt_marks                             { layout_level(p, $1, @1); $$ = 0; } ;
dlt_marks: %empty | '+' | '~' | '+' '~' ;
tiles: tile_list | tile_list open_tile | open_tile ;
tile_list: tile | tile_list tile ;
tile:
      '(' ')'                                   { layout_tile(p, NULL, @1); }
    | '(' tile_item_list ')'                    { layout_tile(p, $2, @2); }
    ;
open_tile: '(' tile_item_list                   { layout_tile(p, $2, @2); } ;
tile_item_list:
      int_or_star                               { $$ = int_list(p, NULL, $1); }
    | tile_item_list ',' int_or_star            { $$ = int_list(p, $1, $3); }
    ;
int_or_star: T_INT | '*' { $$ = TILE_COMBINE; } ;
splits: split_list | split_list open_split | open_split ;
split_list: split | split_list split ;
split: '(' T_INT ':' int_list_opt ')'           { layout_split(p, $2, $4); } ;
open_split: '(' T_INT ':' int_list_opt          { layout_split(p, $2, $4); } ;

/* ---- attributes ---- */

attrs: %empty { p->current = $<rhs>0; } | attrs ',' attr ; /* always behind a right-hand side */
attr:
      A_INT T_INT                               { attr_add(p, $1, ATTR_CLASS_INT, @1, @2)->value.i = $2; }
    | A_NUMBER number                           { attr_add(p, $1, ATTR_CLASS_NUMBER, @1, @2)->number = $2; }
    | A_BOOL bool                               { attr_add(p, $1, ATTR_CLASS_BOOL, @1, @2)->value.i = $2; }
    | A_WORD word                               { attr_add(p, $1, ATTR_CLASS_WORD, @1, @2)->value.s = $2; }
    | A_KIND word                               { attr_add(p, $1, ATTR_CLASS_WORD, @1, @2)->value.s = $2; }
    | A_STRING T_STRING                         { attr_add(p, $1, ATTR_CLASS_STRING, @1, @2)->value.s = $2; }
    | A_RAW T_STRING                            { attr_add(p, $1, ATTR_CLASS_RAW, @1, @2)->value.s = config_value(p, $2); }
    | A_INTS ints                               { attr_add(p, $1, ATTR_CLASS_INTS, @1, @2)->value.ints = $2; }
    | A_LISTS lists_opt                         { attr_lists(p, $1, ATTR_CLASS_LISTS, @1, @2, $2); }
    | A_INTS_OR_LISTS '{' '}'                   { attr_add(p, $1, ATTR_CLASS_INTS_OR_LISTS, @1, @2); }
    | A_INTS_OR_LISTS '{' int_list '}'
      { attr_add(p, $1, ATTR_CLASS_INTS_OR_LISTS, @1, loc_span(@2, @4))->value.ints = list_ints(p, $3); }
    | A_INTS_OR_LISTS T_INTS                    { attr_add(p, $1, ATTR_CLASS_INTS_OR_LISTS, @1, @2)->value.ints = $2; }
    | A_INTS_OR_LISTS '{' lists '}'             { attr_lists(p, $1, ATTR_CLASS_INTS_OR_LISTS, @1, loc_span(@2, @4), $3); }
    | A_BOOLS '{' '}'                           { attr_add(p, $1, ATTR_CLASS_BOOLS, @1, @2); }
    | A_BOOLS '{' bool_list '}'
      { attr_add(p, $1, ATTR_CLASS_BOOLS, @1, loc_span(@2, @4))->value.ints = list_ints(p, $3); }
    | A_SLICES '{' ranges '}'                   { attr_slices(p, $1, @1, loc_span(@2, @4), $3); }
    | A_PADDING T_PAD                           { attr_padding(p, $1, @1, $2); }
    | A_WINDOW '{' window_fields '}'            { attr_window(p, $1, @1, loc_span(@2, @4), $3); }
    | A_DIM_LABELS T_DIM_LABELS                 { attr_dim_labels(p, $1, @1, $2); }
    | A_PRECISION '{' words_opt '}'             { attr_add(p, $1, ATTR_CLASS_PRECISION, @1, loc_span(@2, @4))->words = $3; }
    | A_SHAPE type                              { attr_add(p, $1, ATTR_CLASS_SHAPE, @1, @2)->value.shape = $2; }
    | A_SHAPES '{' types '}'                    { attr_shapes(p, $1, @1, loc_span(@2, @4), $3); }
    | A_LITERAL typed_literal                   { attr_literal(p, $1, @1, @2, $2); }
    | A_ALIASING '{' aliases '}'                { attr_aliasing(p, $1, @1, loc_span(@2, @4), $3); }
    | A_GROUPS groups                           { attr_groups(p, $1, @1, @2, $2); }
    | A_SPARSITY '{' sides '}'                  { attr_sparsity(p, $1, @1, loc_span(@2, @4), $3); }
    | A_SCALING '{' sides '}'                   { attr_scaling(p, $1, @1, loc_span(@2, @4), $3); }
    | A_DOMAIN '{' { domain_begin(p); } domain_items '}' { attr_domain(p, $1, @1, loc_span(@2, @5), p->domain); }
    | A_SHARDING sharding                       { attr_add(p, $1, ATTR_CLASS_SHARDING, @1, @2)->value.sharding = $2; }
    | A_KEY_VALUES key_values                   { attr_key_values(p, $1, @1, @2, $2); }
    | A_STATISTICS '{' stats '}'                { attr_statistics(p, $1, @1, loc_span(@2, @4), $3); }
    | A_ACCURACY '{' accuracy '}'               { attr_add(p, $1, ATTR_CLASS_ACCURACY, @1, loc_span(@2, @4))->value.accuracy = $3; }
    | A_ORIGIN '{' origin_items '}'             { attr_origin(p, $1, @1, loc_span(@2, @4), $3); }
    | A_METADATA T_METADATA                     { attr_add(p, $1, ATTR_CLASS_METADATA, @1, @2)->meta = $2; }
    | A_METADATA subattrs                       { attr_add(p, $1, ATTR_CLASS_METADATA, @1, @2)->meta = meta_end(p); }
    | A_INSTS '{' names '}'                     { attr_add(p, $1, ATTR_CLASS_INSTS, @1, loc_span(@2, @4))->words = $3; }
    | A_COMP callee                             { attr_comps(p, $1, ATTR_CLASS_COMP, @1, @2, comp_list(p, NULL, $2)); }
    | A_COMPS '{' callees '}'                   { attr_comps(p, $1, ATTR_CLASS_COMPS, @1, loc_span(@2, @4), $3); }
    ;

number:
      T_INT                                     { $$ = (Number){.kind = NUM_INT, .i = $1}; }
    | T_DECIMAL
    | K_INF                                     { $$ = (Number){.kind = NUM_INF}; }
    | T_NEG_INF                                 { $$ = (Number){.kind = NUM_INF, .negative = true}; }
    ;

int_list:
      T_INT                                     { $$ = int_list(p, NULL, $1); }
    | int_list ',' T_INT                        { $$ = int_list(p, $1, $3); }
    ;
int_list_opt: %empty { $$ = NULL; } | int_list ;
ints:
      '{' int_list_opt '}'                      { $$ = list_ints(p, $2); }
    | T_INTS
    ;
lists:
      ints                                      { $$ = lists_add(p, NULL, $1); }
    | lists ',' ints                            { $$ = lists_add(p, $1, $3); }
    ;
lists_opt: '{' '}' { $$ = NULL; } | '{' lists '}' { $$ = $2; } ;

names:
      name                                      { $$ = loc_names(p, NULL, $1, @1); }
    | names ',' name                            { $$ = loc_names(p, $1, $3, @3); }
    ;
words_opt: %empty { $$ = NULL; } | word_list ;
word_list:
      word                                      { $$ = loc_names(p, NULL, $1, @1); }
    | word_list ',' word                        { $$ = loc_names(p, $1, $3, @3); }
    ;

callees: %empty { $$ = NULL; } | callee_list ;
callee_list:
      callee                                    { $$ = comp_list(p, NULL, $1); }
    | callee_list ',' callee                    { $$ = comp_list(p, $1, $3); }
    ;

ranges: %empty { $$ = NULL; } | range_list ;
range_list:
      '[' colon_list ']'                        { $$ = range_add(p, NULL, $2, @$); }
    | range_list ',' '[' colon_list ']'         { $$ = range_add(p, $1, $4, loc_span(@3, @5)); }
    ;
colon_list:
      T_INT                                     { $$ = int_list(p, NULL, $1); }
    | colon_list ':' T_INT                      { $$ = int_list(p, $1, $3); }
    ;

dxd:
      T_INT                                     { $$ = int_list(p, NULL, $1); }
    | T_DXD                                     { $$ = dxd_list(p, $1); }
    ;
window_fields:
      %empty                                    { $$ = NULL; }
    | window_fields S_DXD dxd                   { $$ = window_field(p, $1, $2, @2, $3); }
    | window_fields S_PAD T_PAD                 { $$ = window_pad(p, $1, $2, @2, $3); }
    ;

aliases: %empty { $$ = NULL; } | alias_items | alias_items ',' ;
alias_items:
      shape_index ':' '(' T_INT ',' shape_index ')'                 { $$ = operand_alias(p, NULL, $1, $4, $6); }
    | alias_items ',' shape_index ':' '(' T_INT ',' shape_index ')' { $$ = operand_alias(p, $1, $3, $6, $8); }
    ;

sides:
      %empty                                    { $$ = NULL; }
    | sides S_SIDE '{' side_items '}'           { $$ = side_add(p, $1, $2, @2, $4); }
    ;
side_items:
      %empty                                    { $$ = NULL; }
    | side_items S_INT T_INT                    { $$ = pair_add(p, $1, $2, @2, int_list(p, NULL, $3)); }
    | side_items S_DXD dxd                      { $$ = pair_add(p, $1, $2, @2, $3); }
    ;

domain_items: domain_item | ',' domain_item | domain_items domain_item | domain_items ',' domain_item ;
domain_item:
      A_KIND T_STRING                           { domain_kind(p, @1, $2, @2); }
    | S_SHARDING sharding                       { domain_side(p, $1, @1, $2); }
    ;

key_values: '{' '}' { $$ = NULL; } | '{' key_value_list '}' { $$ = $2; } ;
key_value_list:
      T_KEY T_STRING                            { $$ = stat_add(p, NULL, (Stat){.key = $1, .value = $2}); }
    | key_value_list ',' T_KEY T_STRING         { $$ = stat_add(p, $1, (Stat){.key = $3, .value = $4}); }
    ;
stats: %empty { $$ = NULL; } | stat_list ;
stat_list:
      T_KEY T_INT
      { $$ = stat_add(p, NULL, (Stat){.key = $1, .number = {.kind = NUM_INT, .i = $2}, .loc = @2}); }
    | stat_list ',' T_KEY T_INT
      { $$ = stat_add(p, $1, (Stat){.key = $3, .number = {.kind = NUM_INT, .i = $4}, .loc = @4}); }
    | stat_list ',' T_KEY T_DECIMAL             { $$ = stat_add(p, $1, (Stat){.key = $3, .number = $4, .loc = @4}); }
    ;

accuracy:
      A_WORD word                               { $$ = accuracy_mode(p, $1, @1, $2, @2); }
    | S_TOLERANCE '{' tolerances '}'            { $$ = $3; }
    ;
tolerances: %empty { $$ = accuracy_new(p); } | tolerance_list ;
tolerance_list:
      S_NUMBER number                           { $$ = accuracy_number(p, accuracy_new(p), $1, $2, @2); }
    | tolerance_list ',' S_NUMBER number        { $$ = accuracy_number(p, $1, $3, $4, @4); }
    ;

origin_items: %empty { $$ = NULL; } | origin_items origin_item_at { $$ = origin_push(p, $1); } ;
origin_item_at:
      '('                                       { p->origin_item = (OriginItem){.kind = ORIGIN_OPEN, .loc = @1}; }
    | ')'                                       { p->origin_item = (OriginItem){.kind = ORIGIN_CLOSE, .loc = @1}; }
    | ','                                       { p->origin_item = (OriginItem){.kind = ORIGIN_COMMA, .loc = @1}; }
    | origin_array                              { p->origin_item = (OriginItem){.kind = ORIGIN_LEAF, .loc = @1, .array = *$1}; }
    | '[' T_STRING ']'                          { p->origin_item = (OriginItem){.kind = ORIGIN_CALL, .loc = @1, .call = $2}; }
    | '[' W_SYNTHETIC_CALL ']'                  { p->origin_item = (OriginItem){.kind = ORIGIN_SYNTHETIC, .loc = @1}; }
    ;
origin_array:
      '{' '}'                                   { $$ = KEPT(OriginArray, .known = false); }
    | '{' T_STRING '}'                          { $$ = KEPT(OriginArray, .known = true, .name = $2); }
    | '{' T_STRING shape_index '}'              { $$ = KEPT(OriginArray, .known = true, .name = $2, .index = $3); }
    ;

metadata:
      subattrs                                  { $$ = meta_end(p); }
    | T_METADATA
    ;
subattrs: '{' { meta_begin(p); } subattr_items '}' ;
subattr_items: %empty | subattr_list ;
subattr_list: subattr | ',' subattr | subattr_list subattr | subattr_list ',' subattr ;
subattr:
      S_STRING T_STRING                         { meta_string(p, $1, @1, $2); }
    | S_INT T_INT                               { meta_int(p, $1, @1, $2, @2); }
    | S_INTS ints                               { meta_ints(p, $1, @1, $2, @2); }
    ;

/* ---- shardings, meshes, groups ---- */

sharding:
      '{' '}'                                   { $$ = sharding_tuple(p->a, 0, NULL); }
    | '{' shard_list '}'                        { $$ = shard_tuple(p, $2); }
    | shard_single
    ;
shard_list:
      shard_single                              { $$ = shard_list(p, NULL, $1); }
    | shard_list ',' shard_single               { $$ = shard_list(p, $1, $3); }
    ;
shard_single:
      '{' shard_items '}'                       { $$ = shard_old(p, $2, @$); }
    | '{' named '}'                             { $$ = shard_named(p, $2, @$); }
    ;
shard_items: shard_start shard_item             { $$ = p->shard; } | shard_items shard_item ;
shard_start: %empty                             { p->shard = shard_new(p); } ;
shard_item:
      K_REPLICATED                              { p->shard->replicated = true; }
    | K_MANUAL                                  { p->shard->manual = true; }
    | K_UNKNOWN                                 { p->shard->unknown = true; }
    | K_UNREDUCED                               { p->shard->unreduced = true; }
    | K_MAXIMAL                                 { p->shard->maximal = true; }
    | K_LAST_TILE_DIM_REPLICATE                 { p->shard->replicate_last = true; }
    | S_INT T_INT                               { shard_device(p, $1, @1, $2); }
    | S_DEVICES '[' int_list ']' device_list    { shard_devices(p, $3, $5); }
    | S_DEVICES '[' int_list ']' T_LEQ iota     { shard_iota(p, $3, *$6); }
    | S_LAST_TILE_DIMS '{' subgroups '}'        { shard_subgroups(p, $3); }
    | K_SHARD_AS T_INT                          { shard_group(p, GROUP_SHARD_AS, $2); }
    | K_SHARD_LIKE T_INT                        { shard_group(p, GROUP_SHARD_LIKE, $2); }
    | A_METADATA metas                          { shard_metas(p, $2); }
    ;
device_list: int_list ;
subgroups: %empty { $$ = NULL; } | subgroup_list ;
subgroup_list:
      subgroup                                  { $$ = int_list(p, NULL, p->subgroup); }
    | subgroup_list ',' subgroup                { $$ = int_list(p, $1, p->subgroup); }
    ;
subgroup:
      K_REPLICATED                              { p->subgroup = SUBGROUP_REPLICATED; }
    | K_MANUAL                                  { p->subgroup = SUBGROUP_MANUAL; }
    | K_MAXIMAL                                 { p->subgroup = SUBGROUP_MAXIMAL; }
    | K_UNREDUCED                               { p->subgroup = SUBGROUP_UNREDUCED; }
    ;
metas:
      metadata                                  { $$ = meta_list(p, NULL, $1); }
    | '{' meta_list '}'                         { $$ = $2; }
    ;
meta_list:
      metadata                                  { $$ = meta_list(p, NULL, $1); }
    | meta_list ',' metadata                    { $$ = meta_list(p, $1, $3); }
    ;

named:
      mesh_single '[' S_INT T_INT ']' metas_opt { $$ = named_single(p, $3, @3, $4, $6); }
    | mesh comma_opt K_REPLICATED metas_opt     { $$ = named_all(p, $1, NAMED_REPLICATED, $4); }
    | mesh comma_opt K_MANUAL metas_opt         { $$ = named_all(p, $1, NAMED_MANUAL, $4); }
    | mesh comma_opt K_UNREDUCED metas_opt      { $$ = named_unreduced(p, $1, NULL, LOC_NONE, $4); }
    | mesh comma_opt K_UNREDUCED axes metas_opt { $$ = named_partly_unreduced(p, $1, NULL, LOC_NONE, $4, $5); }
    | mesh comma_opt S_UNREDUCED word metas_opt { $$ = named_unreduced(p, $1, $4, @4, $5); }
    | mesh comma_opt S_UNREDUCED word axes metas_opt { $$ = named_partly_unreduced(p, $1, $4, @4, $5, $6); }
    | mesh comma_opt named_dims_open named_attrs { $$ = p->shard; }
    ;
comma_opt: %empty | ',' ;
metas_opt: %empty { $$ = NULL; } | ',' A_METADATA metas { $$ = $3; } ;
named_dims_open: '[' named_dims ']'             { named_begin(p, $<mesh>-1, $2); } ;
named_dims: %empty { $$ = NULL; } | named_dim_list ;
named_dim_list:
      named_dim                                 { $$ = named_dim_push(p, NULL); }
    | named_dim_list ',' named_dim              { $$ = named_dim_push(p, $1); }
    ;
named_dim:
      '{' '}'                                   { named_dim(p, NULL, false); }
    | '{' '?' '}'                               { named_dim(p, NULL, true); }
    | '{' axis_list '}'                         { named_dim(p, $2, false); }
    | '{' axis_list ',' '?' '}'                 { named_dim(p, $2, true); }
    ;
named_attrs: %empty { $$ = NULL; } | named_attrs ',' named_attr ;
named_attr:
      S_AXES axes                               { named_axes(p, $1, $2); }
    | S_UNREDUCED axes                          { named_unreduced_axes(p, NULL, LOC_NONE, $2); }
    | S_UNREDUCED word axes                     { named_unreduced_axes(p, $2, @2, $3); }
    | A_METADATA metas                          { named_metas(p, $2); }
    ;

mesh_single: W_SINGLE_DEVICE | W_MAXIMAL_MESH ;
mesh: W_MESH '[' mesh_axes ']'                  { $$ = mesh_end(p, $3, NULL, @$); }
    | W_MESH '[' mesh_axes ']' T_DEVICE_IDS '(' axis_ids ')' { $$ = mesh_end(p, $3, $7, @$); }
    | W_MESH '[' mesh_axes ']' T_DEVICE_IDS '(' iota ')'     { $$ = mesh_iota(p, $3, *$7, @$); }
    ;
mesh_axes: %empty { $$ = mesh_new(p); } | mesh_axis_list ;
mesh_axis_list:
      T_STRING '=' T_INT                        { $$ = mesh_axis(p, mesh_new(p), $1, @1, $3); }
    | mesh_axis_list ',' T_STRING '=' T_INT     { $$ = mesh_axis(p, $1, $3, @3, $5); }
    ;
axis_ids: int_list_opt                          { $$ = $1 ? $1 : int_list_empty(p); } ;
axes: '{' '}' { $$ = NULL; } | '{' axis_list '}' { $$ = $2; } ;
axis_list:
      axis                                      { $$ = axis_push(p, NULL, *$1); }
    | axis_list ',' axis                        { $$ = axis_push(p, $1, *$3); }
    ;
axis:
      T_STRING                                  { $$ = KEPT(AxisDraft, $1, @1, 0, 0, false); }
    | T_STRING ':' '(' T_INT ')' T_INT          { $$ = KEPT(AxisDraft, $1, @$, $4, $6, true); }
    ;

iota_dims: '[' int_list ']'                     { $$ = list_ints(p, $2); } ;
iota:
      iota_dims                                 { $$ = KEPT(Iota, $1, {NULL, 0}); }
    | iota_dims K_T '(' int_list ')'            { $$ = KEPT(Iota, $1, list_ints(p, $4)); }
    ;
groups:
      lists_opt                                 { $$ = groups_lists(p, $1); }
    | '[' int_list ']' T_LEQ iota               { $$ = groups_iota(p, list_ints(p, $2), *$5, @$); }
    | mesh axes                                 { $$ = groups_mesh(p, $1, $2, @$); }
    | mesh_single '[' S_INT T_INT ']' axes      { $$ = groups_single(p, $3, @3, $4, $6, @$); }
    ;

/* ---- literals ---- */

literal_or_comma: literal | ',' { lit_mark(p, LIT_COMMA, @1); } ;
literal:
      value                                     { lit_value(p, $1, @1); }
    | K_TRUE                                    { lit_mark(p, LIT_TRUE, @1); }
    | K_FALSE                                   { lit_mark(p, LIT_FALSE, @1); }
    | T_DENSE                                   { lit_dense(p, @1); }
    | '{' { lit_mark(p, LIT_OPEN, @1); } literal_items '}' { lit_mark(p, LIT_CLOSE, @4); }
    | '(' { lit_mark(p, LIT_LPAR, @1); } literal_list ')' { lit_mark(p, LIT_RPAR, @4); }
    ;
value: number ;
literal_items: %empty | literal_items ',' | literal_items T_DOTS { lit_mark(p, LIT_DOTS, @2); } | literal_items literal ;
literal_list: %empty | literal_list ',' { lit_mark(p, LIT_COMMA, @2); } | literal_list literal ;

typed_literal:
      array_type { $<i>$ = p->lits.n; } literal_or_comma { $$ = literal_leaf(p, $1, (int32_t)$<i>2, @1); }
    | '(' ')'                                   { $$ = literal_typed_tuple(p, NULL); }
    | '(' typed_list ')'                        { $$ = literal_typed_tuple(p, $2); }
    | '(' typed_list ',' ')'                    { $$ = literal_typed_tuple(p, $2); }
    ;
typed_list:
      typed_literal                             { $$ = typed_push(p, NULL, $1); }
    | typed_list ',' typed_literal              { $$ = typed_push(p, $1, $3); }
    ;

%%

static int hlo_lex(HLO_STYPE *v, HLO_LTYPE *loc, Parser *p)
{
    return filter_next(p, v, loc);
}

/* Only "memory exhausted" comes here; syntax errors go through the function below. */
static void hlo_error(HLO_LTYPE *loc, Parser *p, const char *msg)
{

    p->error_loc = *loc;
    parse_error(p, *loc, "nested too deeply");
}

static int yyreport_syntax_error(const yypcontext_t *ctx, Parser *p)
{
    enum { MAX = 64 };
    yysymbol_kind_t expected[MAX];
    const char     *words[MAX];
    int             n = yypcontext_expected_tokens(ctx, expected, MAX);
    for (int k = 0; k < n; k++)
        words[k] = yysymbol_name(expected[k]);
    parse_unexpected(p, *yypcontext_location(ctx), n, words);
    return 0;
}
